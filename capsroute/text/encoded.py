"""Texts as token ids: one flat array and where each text begins in it.

    text i  =  ids[offsets[i] : offsets[i + 1]]

Four bytes a token and eight a text, whatever the lengths: padding is made for a batch, never for a corpus. Ids that
are many are mapped from a file (growing.py).

>>> encoded = EncodedTexts(np.array([2, 3, 4, 5], dtype=np.int32), np.array([0, 3, 3, 4]))
>>> len(encoded), encoded.row(0).tolist(), encoded.lengths.tolist(), encoded.limited(2).cut
(3, [2, 3, 4], [3, 0, 1], 1)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capsroute.checks import above, at_least
from capsroute.text.growing import GrowingIds

BLOCK = 16_384
UNKNOWN = 1
"""The id of a word that is not in the vocabulary."""


@dataclass(frozen=True, eq=False)
class EncodedTexts:
    """Token ids of texts.

    Args:
        cut: how many of the texts were longer and have lost their end.
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    cut: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each text."""
        return np.diff(self.offsets)

    @property
    def unknown_share(self) -> float:
        """The share of tokens that are unknown words."""
        return float(np.count_nonzero(self.ids == UNKNOWN) / max(1, len(self.ids)))

    def row(self, number: int) -> NDArray[np.int32]:
        """The ids of one text."""
        return self.ids[self.offsets[number] : self.offsets[number + 1]]

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> "EncodedTexts":
        """Some of the texts, in the order given; how many of them are cut is not known any more."""
        at = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[at]
        return EncodedTexts(self._gather(self.offsets[:-1][at], lengths), ends(lengths))

    def limited(self, max_length: int) -> "EncodedTexts":
        """The same texts, each at most that long."""
        at_least("max_length", max_length, 1)
        lengths = np.minimum(self.lengths, max_length)
        cut = int(np.count_nonzero(self.lengths > max_length))
        if not cut:
            return self
        return EncodedTexts(self._gather(self.offsets[:-1], lengths), ends(lengths), self.cut + cut)

    def _gather(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int32]:
        """Ids from many places, block by block: positions take twice the room of ids."""
        ids = GrowingIds()
        for first in range(0, len(starts), BLOCK):
            block = slice(first, first + BLOCK)
            ids.add(self.ids[ragged(starts[block], lengths[block])])
        return ids.finish()


def ends(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths -> offsets."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ragged(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The positions of pieces that lie at `starts`, one piece behind the other."""
    offsets = ends(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1], dtype=np.int64)


def suggest_max_length(
    lengths: Sequence[int] | NDArray[np.int64], *, share: float = 0.95, lowest: int = 16, highest: int = 512
) -> int:
    """A length that this share of the texts keeps to, within bounds."""
    above("share", share, 0)
    at_least("1 - share", 1 - share, 0)
    at_least("lowest", lowest, 1)
    at_least("highest", highest, lowest)
    if len(lengths) == 0:
        return lowest
    # the smallest length that keeps the share whole, not an interpolated one
    found = int(np.quantile(np.asarray(lengths), share, method="inverted_cdf"))
    return min(max(found, lowest), highest)
