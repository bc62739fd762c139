"""How a data set is divided into a part to learn from and a part to test on.

>>> Random(train=2, test=1).rows(Corpus.of(["a", "b", "c", "d"]), seed=0)
(array([0, 2]), array([1]))
"""

import hashlib
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from capsroute.text.corpus import Corpus
from capsroute.text.problems import CorpusError

Rows = NDArray[np.int64]


@runtime_checkable
class SplitRule(Protocol):
    """A corpus -> the rows of its two parts, each in the order of the corpus."""

    def rows(self, corpus: Corpus, *, seed: int) -> tuple[Rows, Rows]: ...


@dataclass(frozen=True)
class Random:
    """So many rows for each part, drawn by seed; with test=None all that training leaves."""

    train: int
    test: int | None = None

    def rows(self, corpus: Corpus, *, seed: int) -> tuple[Rows, Rows]:
        needed = self.train + (1 if self.test is None else self.test)
        if len(corpus) < needed:
            raise CorpusError(f"'{corpus.file}' has {len(corpus):,} rows, but its split takes {needed:,}.")
        drawn = np.random.default_rng(seed).permutation(len(corpus))
        rest = drawn[self.train :]
        return np.sort(drawn[: self.train]), np.sort(rest if self.test is None else rest[: self.test])


@dataclass(frozen=True)
class Share:
    """A share of all rows for training, drawn by seed, and the others for testing."""

    train: float

    def rows(self, corpus: Corpus, *, seed: int) -> tuple[Rows, Rows]:
        return Random(round(self.train * len(corpus))).rows(corpus, seed=seed)


@dataclass(frozen=True)
class ByColumn:
    """The parts that the data set names itself, in a column.

    Args:
        only: columns and what they must hold; other rows are in neither part.
    """

    column: str
    train: str
    test: str
    only: dict[str, str] = field(default_factory=dict[str, str])

    def rows(self, corpus: Corpus, *, seed: int) -> tuple[Rows, Rows]:  # noqa: ARG002
        part = np.array(corpus.column(self.column))
        used = np.ones(len(part), dtype=np.bool_)
        for column, value in self.only.items():
            used &= np.array(corpus.column(column)) == value
        return np.flatnonzero((part == self.train) & used), np.flatnonzero((part == self.test) & used)


@dataclass(frozen=True)
class ByHash:
    """About a fifth for testing, told by a hash: the same rows for every seed and on every machine.

    Args:
        of: "document": ids are `document_snippet`, and snippets of one document stay in one part;
            "text": so do equal texts.
    """

    of: Literal["document", "text"]

    def rows(self, corpus: Corpus, *, seed: int) -> tuple[Rows, Rows]:  # noqa: ARG002
        keys = corpus if self.of == "text" else (name.split("_")[0] for name in corpus.column("id"))
        test = np.fromiter((hash_of(key) % 5 == 0 for key in keys), np.bool_, len(corpus))
        return np.flatnonzero(~test), np.flatnonzero(test)


def hash_of(key: str) -> int:
    """A number that is the same everywhere, as Python's own hash is not."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
