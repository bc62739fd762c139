"""What training needs of its data: batches that come in an order fixed by the number of the epoch.

`capsroute.text.batches.Batches` is one; anything with these two methods is as good.
"""

import hashlib
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

Rows = Int[np.ndarray, " text"]


@runtime_checkable
class TextBatch(Protocol):
    """A few texts."""

    @property
    def ids(self) -> Int[Tensor, "text token"]:
        """Token ids, 0 for padding."""
        ...

    @property
    def targets(self) -> Tensor:
        """Class numbers [text], or for several labels a text a table [text, class] of zeros and ones."""
        ...

    @property
    def rows(self) -> Rows:
        """Where in the input each text stood."""
        ...


@runtime_checkable
class BatchSource(Protocol):
    """All texts, a batch at a time, as often as asked."""

    def __len__(self) -> int:
        """Batches in an epoch."""
        ...

    def epoch(self, number: int, start: int = 0) -> Iterator[TextBatch]:
        """The batches of an epoch from number `start` on. Epochs count from 1; the same number, the same order."""
        ...


class NetworkOutput(Protocol):
    """What training reads of a network's output."""

    @property
    def scores(self) -> Float[Tensor, "text class"]:
        """The higher, the likelier."""
        ...

    @property
    def activation(self) -> Float[Tensor, "text parent"]:
        """What the loss pulls at."""
        ...


def decide(scores: Float[Tensor, "text class"], targets: Tensor) -> Tensor:
    """Scores -> classes, in the form of the targets: the highest class, or a table of all from 0.5 on."""
    return scores.argmax(dim=1) if targets.ndim == 1 else (scores >= 0.5).to(targets.dtype)


def count_right(scores: Float[Tensor, "text class"], targets: Tensor) -> Int[Tensor, ""]:
    """How many texts have all their labels right."""
    right = decide(scores, targets) == targets
    return (right if right.ndim == 1 else right.all(dim=1)).sum()


def fingerprint(*sources: BatchSource | None) -> str:
    """Tells data apart by the number of batches and the first of them."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(b"" if source is None else str(len(source)).encode())
        if source is not None:
            batch = next(source.epoch(1))
            for values in (batch.ids.cpu().numpy(), batch.targets.cpu().numpy(), batch.rows):
                digest.update(f"{values.dtype}{values.shape}".encode())
                digest.update(values.tobytes())
    return digest.hexdigest()
