"""Ids of many texts, fast: what stands between two spaces is tokenised once and remembered.

A space is in no token, and no step of a tokenizer looks across one. So the ids of a text are those of its pieces, one
behind the other, and a corpus has far fewer different pieces than pieces. Of those not met before, plain words are
looked up at once and the others go to the Rust tokenizer together, which works on all cores. What is remembered is
bounded; then it is forgotten and begun again.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from capsroute.text.encoded import UNKNOWN, ends, ragged

MOST_PIECES = 400_000
MOST_CHARACTERS = 1 << 25
GROUP = 256
HARD = -1


def pieces_of(text: str) -> list[str]:
    """A text split at spaces and line feeds; pieces may be empty."""
    return text.replace("\n", " ").split(" ")


def is_plain(piece: str) -> bool:
    """Whether a piece is one word under all rules: nothing but the letters a to z and digits."""
    return piece.isascii() and piece.isalnum()


def plain_word(piece: str, lowercase: bool) -> str:
    """The word that a plain piece is."""
    return piece.lower() if lowercase else piece


class _Numbers(dict[str, int]):
    """Pieces by number; a new one gets the next and is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.new: list[str] = []

    def __missing__(self, piece: str) -> int:
        number = self[piece] = len(self)
        self.new.append(piece)
        return number


class PieceCache:
    """Texts -> ids. Not safe to be shared by threads: its owner locks."""

    def __init__(self, tokenizer: Tokenizer, *, lowercase: bool) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = tokenizer.get_vocab()
        self._lowercase = lowercase
        self._forget()

    def _forget(self) -> None:
        self._numbers = _Numbers()
        self._characters = 0
        self._ids = np.zeros(0, dtype=np.int32)
        self._offsets = np.zeros(1, dtype=np.int64)

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of all texts, and how many each has."""
        try:
            pieces = [pieces_of(text) for text in texts]
            counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
            total = int(counts.sum())
            numbers = np.fromiter(map(self._numbers.__getitem__, chain.from_iterable(pieces)), np.int64, total)
            if self._numbers.new:
                self._learn(self._numbers.new)
                self._numbers.new = []
        except BaseException:  # pieces noted but not learned would be answered wrongly later
            self._forget()
            raise
        starts = self._offsets[:-1][numbers]
        lengths = self._offsets[1:][numbers] - starts
        ids = self._ids[ragged(starts, lengths)]
        tokens = np.add.reduceat(lengths, ends(counts)[:-1]) if texts else counts
        if len(self._numbers) > MOST_PIECES or self._characters > MOST_CHARACTERS:
            self._forget()
        return ids, tokens

    def _learn(self, pieces: list[str]) -> None:
        ids = np.array([self._known_id(piece) for piece in pieces], dtype=np.int32)
        lengths = np.ones(len(pieces), dtype=np.int64)
        hard = np.flatnonzero(ids == HARD)
        flat, lengths[hard] = self._from_rust([pieces[at] for at in hard])
        learned = np.empty(int(lengths.sum()), dtype=np.int32)
        is_hard = np.repeat(ids == HARD, lengths)
        learned[is_hard] = flat
        learned[~is_hard] = ids[ids != HARD]
        self._ids = np.concatenate([self._ids, learned])
        self._offsets = np.concatenate([self._offsets, self._offsets[-1] + ends(lengths)[1:]])
        self._characters += sum(map(len, pieces))

    def _known_id(self, piece: str) -> int:
        return self._vocabulary.get(plain_word(piece, self._lowercase), UNKNOWN) if is_plain(piece) else HARD

    def _from_rust(self, pieces: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        # Many short inputs cost more than a few long ones: pieces go in groups, and word_ids tells them apart.
        groups = [pieces[start : start + GROUP] for start in range(0, len(pieces), GROUP)]
        found = self._tokenizer.encode_batch(groups, is_pretokenized=True, add_special_tokens=False)
        ids = np.fromiter(chain.from_iterable(encoding.ids for encoding in found), np.int32)
        homes = [np.array(encoding.word_ids, dtype=np.int64) + GROUP * group for group, encoding in enumerate(found)]
        return ids, np.bincount(np.concatenate([*homes, np.zeros(0, np.int64)]), minlength=len(pieces))
