"""Texts -> word numbers, with the Rust library `tokenizers`: normalise, split, look up.

    0 no token (padding)    1 unknown word    2, 3, ... words by frequency, ties by alphabet

Normalisation is Unicode NFC, and lower case and no accents where that is wished; spans refer to the text as it was
given. A word is a run of letters, marks, digits and underscores, with apostrophes inside; each character of Chinese
and Japanese is a word of its own; so is each emoji, with what is joined to it. Control and format characters (NUL
among them) are in no word. Punctuation is

    split     each sign a token of its own
    drop      left out, and other signs such as + and $ with it (emoji stay)
    keep      left where it is: tokens are what stands between white space

>>> tokenizer = Tokenizer.train(["Good film!", "good, GOOD plot"], TokenizerConfig(min_frequency=1))
>>> tokenizer.words, tokenizer.encode(["A good plot."]).row(0).tolist()
(['good', '!', ',', 'film', 'plot'], [1, 2, 6, 1])
>>> tokenizer.encode_with_offsets("A good plot.").spans
[(0, 1), (2, 6), (7, 11), (11, 12)]
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers.models import WordLevel

from capsroute.checks import at_least, one_of, unknown
from capsroute.text.encoded import EncodedTexts, ends
from capsroute.text.growing import GrowingIds
from capsroute.text.pieces import PieceCache
from capsroute.text.vocabulary import count_words

Accents = Literal["keep", "strip"]
Punctuation = Literal["split", "drop", "keep"]

NO_TOKEN, UNKNOWN_WORD = "<no token>", "<unknown word>"  # a space is in no token: no text can hold these
BLOCK_TEXTS = 4096
BLOCK_CHARACTERS = 1 << 22

_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}"
_LETTER = rf"[\p{{L}}\p{{M}}\p{{N}}_&&[^{_CJK}]]"
_WORD = rf"{_LETTER}+(?:['’\x{{200C}}\x{{200D}}]{_LETTER}+)*"  # the joiners are of Persian and Hindi
_CJK_WORD = rf"[{_CJK}]\p{{M}}*"
_EMOJI = r"\p{So}[\p{M}\x{1F3FB}-\x{1F3FF}]*(?:\x{200D}\p{So}[\p{M}\x{1F3FB}-\x{1F3FF}]*)*"
_SIGN = r"[^\s\p{L}\p{M}\p{N}\p{Cc}\p{Cf}_]"
PATTERNS: dict[Punctuation, str] = {
    "split": "|".join((_WORD, _CJK_WORD, _EMOJI, _SIGN)),
    "drop": "|".join((_WORD, _CJK_WORD, _EMOJI)),
    "keep": rf"{_CJK_WORD}|[^\s\p{{Cc}}{_CJK}]+",
}


class TokenizerError(ValueError):
    """A file that holds no tokenizer of capsroute's."""


@dataclass(frozen=True)
class TokenizerConfig:
    """What counts as a word.

    Args:
        min_frequency: a word seen less often in training is unknown.
        max_words: how many words to know at most, the most frequent ones; None: all.
        max_length: tokens after which a text is cut; None: never.
    """

    lowercase: bool = True
    accents: Accents = "keep"
    punctuation: Punctuation = "split"
    min_frequency: int = 2
    max_words: int | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        one_of("accents", self.accents, get_args(Accents))
        one_of("punctuation", self.punctuation, get_args(Punctuation))
        at_least("min_frequency", self.min_frequency, 1)
        if self.max_words is not None:
            at_least("max_words", self.max_words, 1)
        if self.max_length is not None:
            at_least("max_length", self.max_length, 1)


class TokenSpans(NamedTuple):
    """The tokens of one text."""

    tokens: list[str]  # normalised, as they are looked up
    ids: list[int]
    spans: list[tuple[int, int]]  # characters [start, stop) of the text as it was given
    cut: int  # tokens after these, which max_length left out


class Tokenizer:
    """Word numbers of texts.

    Args:
        words: the vocabulary, in the order of the numbers from 2 on.
    """

    def __init__(self, words: Sequence[str], config: TokenizerConfig | None = None) -> None:
        self.config = config or TokenizerConfig()
        self.words = list(words)
        vocabulary = {NO_TOKEN: 0, UNKNOWN_WORD: 1, **{word: number for number, word in enumerate(words, 2)}}
        if len(vocabulary) != len(self.words) + 2:
            raise ValueError("words must differ from each other, but some occur twice.")
        self._normalizer = normalizer_of(self.config)
        self._splitter = splitter_of(self.config)
        self._rust = tokenizers.Tokenizer(WordLevel(vocabulary, UNKNOWN_WORD))
        self._rust.normalizer = self._normalizer
        self._rust.pre_tokenizer = self._splitter
        self._cache = PieceCache(self._rust, lowercase=self.config.lowercase)
        self._lock = Lock()

    @staticmethod
    def train(texts: Iterable[str], config: TokenizerConfig | None = None) -> "Tokenizer":
        """The words of these texts, by frequency; a corpus can be given as it is."""
        config = config or TokenizerConfig()
        counts = count_words(
            map(_sound, texts), normalizer_of(config), splitter_of(config), lowercase=config.lowercase
        )
        frequent = [(word, count) for word, count in counts.items() if count >= config.min_frequency]
        frequent.sort(key=lambda entry: (-entry[1], entry[0]))
        return Tokenizer([word for word, _ in frequent[: config.max_words]], config)

    def __len__(self) -> int:
        """How many ids there are, those of padding and of unknown words included."""
        return len(self.words) + 2

    def __reduce__(self) -> tuple[object, ...]:
        return Tokenizer, (self.words, self.config)

    def limited(self, max_length: int | None) -> "Tokenizer":
        """The same words for texts of another greatest length."""
        return Tokenizer(self.words, replace(self.config, max_length=max_length))

    def encode(self, texts: Iterable[str]) -> EncodedTexts:
        """The ids of texts, block by block; a corpus can be given as it is."""
        ids = GrowingIds()
        lengths: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
        cut = 0
        for block in _blocks(map(_sound, texts)):
            with self._lock:
                flat, counts = self._cache.encode(block)
            if self.config.max_length is not None:
                limited = EncodedTexts(flat, ends(counts)).limited(self.config.max_length)
                flat, counts, cut = limited.ids, limited.lengths, cut + limited.cut
            ids.add(flat)
            lengths.append(counts)
        return EncodedTexts(ids.finish(), ends(np.concatenate(lengths)), cut)

    def encode_with_offsets(self, text: str) -> TokenSpans:
        """The tokens of one text with their places in it."""
        sound = _sound(text)
        encoding = self._rust.encode(sound, add_special_tokens=False)
        tokens = self.split(sound)
        stop = self.config.max_length
        spans = _with_marks(sound, encoding.offsets)
        return TokenSpans(
            tokens[:stop], encoding.ids[:stop], spans[:stop], max(0, len(tokens) - (stop or len(tokens)))
        )

    def split(self, text: str) -> list[str]:
        """The words of a text as they are looked up, known or not."""
        return [word for word, _ in self._splitter.pre_tokenize_str(self.normalize(text))]

    def normalize(self, text: str) -> str:
        """A text as it is before it is split."""
        return self._normalizer.normalize_str(_sound(text))

    def save(self, file: str | Path) -> None:
        """Write the JSON of the library `tokenizers`, and the settings in a key "capsroute" of it."""
        content = {**json.loads(self._rust.to_str()), "capsroute": asdict(self.config)}
        Path(file).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(file: str | Path) -> "Tokenizer":
        """Read what `save` wrote; a file that was changed in any way that matters is refused."""
        try:
            content = cast("dict[str, Any]", json.loads(Path(file).read_text(encoding="utf-8")))
            settings = cast("dict[str, Any]", content.pop("capsroute"))
            vocabulary = cast("dict[str, int]", content["model"]["vocab"])
            words = sorted(vocabulary, key=vocabulary.__getitem__)
            names = [field.name for field in fields(TokenizerConfig)]
            for name in settings:
                if name not in names:
                    raise unknown("setting", name, names)
            made = Tokenizer(words[2:], TokenizerConfig(**settings))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
            raise TokenizerError(
                f"'{file}' holds no tokenizer that capsroute wrote ({reason.rstrip('.')})."
            ) from error
        if not _same_rules(made._rust, content):
            raise TokenizerError(f"'{file}' is not as capsroute wrote it: its vocabulary or its rules were changed.")
        return made


def _same_rules(made: tokenizers.Tokenizer, stored: dict[str, Any]) -> bool:
    """Whether a file says what `made` does. Both are written by the library of today, which may say more in it."""
    try:
        read = tokenizers.Tokenizer.from_str(json.dumps(stored))
    except Exception:  # the library raises nothing narrower
        return False
    return read.to_str() == made.to_str()


def normalizer_of(config: TokenizerConfig) -> normalizers.Normalizer:
    """Decompose, strip, compose, lower the case: what of it is asked for."""
    strip = [normalizers.NFD(), normalizers.StripAccents()] if config.accents == "strip" else []
    lower = [normalizers.Lowercase()] if config.lowercase else []
    return normalizers.Sequence([*strip, normalizers.NFC(), *lower])


def splitter_of(config: TokenizerConfig) -> pre_tokenizers.PreTokenizer:
    """Everything between two matches of the pattern is left out."""
    return pre_tokenizers.Split(Regex(PATTERNS[config.punctuation]), "removed", invert=True)


def _with_marks(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans with all that was composed into a token's last character: accents, the parts of a Hangul syllable.

    The library's spans end before them.
    """
    if text.isascii():
        return spans
    whole: list[tuple[int, int]] = []
    limits = [*(start for start, _ in spans), len(text)]
    for (start, stop), limit in zip(spans, limits[1:], strict=True):
        while stop < limit and (unicodedata.category(text[stop])[0] == "M" or "\u1160" <= text[stop] <= "\u11ff"):
            stop += 1
        whole.append((start, stop))
    return whole


def _sound(text: str) -> str:
    """Half of a surrogate pair is no character and no library takes it: it is read as '?', in its place."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts by the thousand, fewer where they are long."""
    block: list[str] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text)
        if len(block) == BLOCK_TEXTS or size > BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block
