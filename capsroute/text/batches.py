"""Texts of like length together: batches with little padding, in an order that seed and epoch alone decide.

A shuffled epoch shuffles all texts, sorts each large chunk of them by length, cuts the chunks into batches and
shuffles the batches. Every text comes once; the last batch of all may be smaller. Unshuffled, all texts are sorted by
length; `rows` says where each stood.

>>> encoded = EncodedTexts(np.array([5, 6, 7, 8], dtype=np.int32), np.array([0, 3, 4]))
>>> [(batch.ids.tolist(), batch.rows.tolist()) for batch in Batches(encoded, batch_size=2, shuffle=False).epoch(1)]
[([[8, 0, 0], [5, 6, 7]], [1, 0])]
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from capsroute.checks import at_least
from capsroute.encoders.base import PADDING
from capsroute.text.encoded import EncodedTexts, ragged

CHUNK_BATCHES = 64
"""Batches that are sorted together: enough for texts of like length to meet, few enough that epochs differ."""


class Batch(NamedTuple):
    """A few texts."""

    ids: Int[Tensor, "text token"]  # int64, 0 for padding; at least one column
    targets: Tensor  # class numbers [text] or a table [text, class]; of width 0 where no targets were given
    rows: NDArray[np.int64]  # where each text stood in the input


class Batches:
    """All texts, a batch at a time, as often as asked.

    Args:
        targets: class numbers [text] or a table [text, class]; None where nothing is known.
        shuffle: for learning; else the same order in every epoch.
        bucket: texts of like length together; else in the order of the shuffle, or of the input.
    """

    def __init__(
        self,
        encoded: EncodedTexts,
        targets: Tensor | None = None,
        *,
        batch_size: int,
        seed: int = 0,
        shuffle: bool = True,
        bucket: bool = True,
    ) -> None:
        at_least("batch_size", batch_size, 1)
        at_least("seed", seed, 0)
        if targets is not None and len(targets) != len(encoded):
            raise ValueError(f"there are {len(encoded)} texts, but {len(targets)} targets.")
        self.encoded = encoded
        self.targets = torch.zeros(len(encoded), 0) if targets is None else targets
        self.batch_size = batch_size
        self.seed = seed
        self.shuffle = shuffle
        self.bucket = bucket

    def __len__(self) -> int:
        """Batches in an epoch."""
        return -(-len(self.encoded) // self.batch_size)

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from the one numbered `start` on: a run that was interrupted goes on there."""
        at_least("number", number, 0)
        at_least("start", start, 0)
        rows = self._order(number)
        for at in self._batch_order(number)[start:]:
            yield self._batch(rows[at * self.batch_size : (at + 1) * self.batch_size])

    def _order(self, epoch: int) -> NDArray[np.int64]:
        """All rows, those of a batch beside each other."""
        lengths = self.encoded.lengths
        if not self.shuffle:
            return np.argsort(lengths, kind="stable") if self.bucket else np.arange(len(lengths))
        rows = np.random.default_rng([self.seed, epoch, 0]).permutation(len(lengths))
        if not self.bucket:
            return rows
        chunk = np.arange(len(rows)) // (self.batch_size * CHUNK_BATCHES)
        return rows[np.lexsort((lengths[rows], chunk))]  # by chunk, then by length; stable

    def _batch_order(self, epoch: int) -> NDArray[np.int64]:
        if self.shuffle and self.bucket:
            return np.random.default_rng([self.seed, epoch, 1]).permutation(len(self))
        return np.arange(len(self))

    def _batch(self, rows: NDArray[np.int64]) -> Batch:
        starts = self.encoded.offsets[rows]
        lengths = self.encoded.offsets[rows + 1] - starts
        width = max(1, int(lengths.max()))
        ids = np.full((len(rows), width), PADDING, dtype=np.int64)
        ids[np.arange(width) < lengths[:, None]] = self.encoded.ids[ragged(starts, lengths)]
        return Batch(torch.from_numpy(ids), self.targets[torch.from_numpy(rows)], rows)  # pyright: ignore[reportUnknownMemberType]
