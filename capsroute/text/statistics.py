"""The numbers of the paper's table of data sets, counted: texts, classes, lengths, vocabulary."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from capsroute.checks import one_of
from capsroute.text.corpus import Corpus
from capsroute.text.tokens import Tokenizer, TokenizerConfig

Unit = Literal["words", "characters"]


@dataclass(frozen=True)
class Statistics:
    """A row of the table.

    Args:
        mean_length, longest: of training and test texts together, in `unit`s.
        vocabulary: different words, however rare.
    """

    train: int
    test: int
    classes: int
    mean_length: float
    longest: int
    vocabulary: int
    unit: Unit = "words"


def statistics(train: Corpus, test: Corpus, *, unit: Unit = "words") -> Statistics:
    """Count; words are lower-cased and without punctuation, which is how the paper's mean of AG News comes out."""
    one_of("unit", unit, ("words", "characters"))
    tokenizer = Tokenizer.train(chain(train, test), TokenizerConfig(punctuation="drop", min_frequency=1))
    lengths = np.concatenate([_lengths(tokenizer, corpus, unit) for corpus in (train, test)])
    return Statistics(
        train=len(train),
        test=len(test),
        classes=len(set(_labels(train)) | set(_labels(test))),
        mean_length=float(lengths.mean()),
        longest=int(lengths.max()),
        vocabulary=len(tokenizer.words),
        unit=unit,
    )


def _lengths(tokenizer: Tokenizer, corpus: Corpus, unit: Unit) -> NDArray[np.int64]:
    if unit == "words":
        return tokenizer.encode(corpus).lengths
    return np.fromiter(map(len, corpus), np.int64, len(corpus))


def _labels(corpus: Corpus) -> Iterable[str]:
    if corpus.several_labels:
        return chain.from_iterable(corpus.labels)
    return cast("list[str]", corpus.labels)
