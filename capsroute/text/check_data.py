"""What is in a corpus, and what is wrong with it, before anything is trained on it.

Problems are what training or evaluation would fail at; warnings are what makes their results worse than they look.

>>> report = check_data(Corpus.of(["good", "good", "bad"], ["pos", "neg", "neg"]))
>>> report.labels, report.problems, report.warnings[0]
({'neg': 2, 'pos': 1}, [], 'texts that occur again: 1')
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from capsroute.text.corpus import Corpus
from capsroute.text.encoded import suggest_max_length
from capsroute.text.labels import LabelError, Labels
from capsroute.text.tokens import Tokenizer, TokenizerConfig

EMPTY = 0
"""The key of a text of nothing but white space: those are no duplicates of each other."""
BLOCK = 8192
SHOWN = 10
FEW_ROWS = 10
"""A class with fewer is warned of: some for training, some to validate on, some to test."""
MOJIBAKE = re.compile("[ÃÂ][\u0080-\u00bf]|[ÃÂâ][€\u0080-\u009f‚-„†-•™š›œžŸ]|ï»¿")
"""UTF-8 that was read as Latin-1 or cp1252 and written again: é as Ã©, ’ as â€™."""


@dataclass(frozen=True)
class Lengths:
    """Tokens of the texts, as the tokenizer counts them."""

    mean: float
    share_95: int  # 95 % of the texts are no longer
    longest: int


@dataclass(frozen=True)
class DataReport:
    """What `check_data` found.

    Args:
        guessed: which of "text" and "label" nobody named.
        skipped: rows that could not be read, at which training would stop.
        cut: texts that are longer than the suggested length.
        duplicates: texts that occur again, beyond their first time.
        conflicts: different texts that occur with different labels.
        in_both: rows of the test part whose text is in the training part too.
        broken_characters: texts with U+FFFD, which stands where a character was lost.
        mojibake: texts with signs of having been decoded wrongly.
    """

    file: str
    text_column: str
    label_column: str | None
    guessed: tuple[str, ...]
    rows: int
    skipped: int
    labels: dict[str, int]
    lengths: Lengths
    suggested_max_length: int
    cut: int
    empty: int
    duplicates: int
    conflicts: int
    broken_characters: int
    mojibake: int
    nul: int
    test_rows: int | None = None
    in_both: int | None = None
    problems: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])

    def to_json(self) -> dict[str, Any]:
        """For json.dumps."""
        return asdict(self)


def check_data(corpus: Corpus, test: Corpus | None = None, *, config: TokenizerConfig | None = None) -> DataReport:
    """Look at a corpus, and at the test part that goes with it.

    Args:
        config: how words are told apart, for the lengths.
    """
    seen = _look(corpus, config or TokenizerConfig())
    keys = seen.keys[seen.keys != EMPTY]
    report = DataReport(
        file=corpus.file,
        text_column=corpus.text_column,
        label_column=corpus.label_column,
        guessed=corpus.guessed,
        rows=len(corpus),
        skipped=corpus.skipped,
        labels=_label_counts(corpus),
        lengths=_lengths(seen.lengths),
        suggested_max_length=suggest_max_length(seen.lengths),
        cut=int((seen.lengths > suggest_max_length(seen.lengths)).sum()),
        empty=corpus.empty,
        duplicates=len(keys) - len(np.unique(keys)),
        conflicts=_conflicts(corpus, seen.keys),
        broken_characters=seen.signs["broken"],
        mojibake=seen.signs["mojibake"],
        nul=seen.signs["nul"],
        test_rows=None if test is None else len(test),
        in_both=None if test is None else int(np.isin(_look(test, None).keys, keys).sum()),
    )
    report.problems.extend(_problems(report, corpus, test))
    report.warnings.extend(_warnings(report))
    return report


@dataclass(frozen=True)
class _Seen:
    """One pass over the texts."""

    keys: NDArray[np.uint64]  # equal for equal texts
    lengths: NDArray[np.int64]
    signs: Counter[str]


def _look(corpus: Corpus, config: TokenizerConfig | None) -> _Seen:
    """Keys, and if there is a config also lengths and signs of broken encoding."""
    tokenizer = Tokenizer([], config)  # lengths do not depend on which words are known
    keys = np.empty(len(corpus), dtype=np.uint64)
    lengths: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    signs = Counter[str]()
    for start in range(0, len(corpus), BLOCK):
        texts = corpus.texts(start, start + BLOCK)
        keys[start : start + len(texts)] = [_key(text) for text in texts]
        if config is not None:
            lengths.append(tokenizer.encode(texts).lengths)
            signs["nul"] += sum("\0" in text for text in texts)
            signs["broken"] += sum("\ufffd" in text for text in texts)
            signs["mojibake"] += sum(not text.isascii() and MOJIBAKE.search(text) is not None for text in texts)
    return _Seen(keys, np.concatenate(lengths), signs)


def _key(text: str) -> int:
    words = " ".join(text.split())
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "little") if words else EMPTY


def _label_counts(corpus: Corpus) -> dict[str, int]:
    """The most frequent first."""
    if not corpus.has_labels:
        return {}
    labels: Iterable[str] = cast("list[str]", corpus.labels)
    if corpus.several_labels:
        labels = (label for row in cast("list[list[str]]", corpus.labels) for label in row)
    return dict(sorted(Counter(labels).items(), key=lambda entry: (-entry[1], entry[0])))


def _lengths(lengths: NDArray[np.int64]) -> Lengths:
    if not len(lengths):
        return Lengths(0.0, 0, 0)
    share_95 = int(np.quantile(lengths, 0.95, method="inverted_cdf"))
    return Lengths(float(lengths.mean()), share_95, int(lengths.max()))


def _conflicts(corpus: Corpus, keys: NDArray[np.uint64]) -> int:
    """Different texts that come with more than one label, or set of labels."""
    if not corpus.has_labels:
        return 0
    numbers: dict[object, int] = {}
    labels = [tuple(sorted(label)) if isinstance(label, list) else label for label in corpus.labels]
    classes = np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
    pairs = np.unique(np.stack([keys, classes.astype(np.uint64)])[:, keys != EMPTY], axis=1)
    return int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())


def _problems(report: DataReport, corpus: Corpus, test: Corpus | None) -> Iterator[str]:
    for part in (corpus, *([] if test is None else [test])):
        if part.skipped:
            shown = "; ".join(map(str, part.bad_rows)) + ("; ..." if part.skipped > len(part.bad_rows) else "")
            yield f"rows that cannot be used: {part.skipped:,} ({shown})"
    if not report.rows:
        yield "there are no rows"
        return
    if not corpus.has_labels:
        yield "there are no labels: name their column with label=... (--label)"
    else:
        try:
            Labels.of(corpus)
        except LabelError as error:
            yield str(error).removesuffix(".")
    if report.empty == report.rows:
        yield "every text is empty"
    if test is None or not corpus.has_labels:
        return
    if not test.has_labels:
        yield "the test part has no labels"
    elif test.several_labels != corpus.several_labels:
        yield "one of the two parts has one label a text, the other lists of labels"
    for label, count in _label_counts(test).items():
        if label not in report.labels:
            yield f"the test part has the label '{label}' ({count} times), which the training part has not"


def _warnings(report: DataReport) -> Iterator[str]:
    counts = {
        "empty texts": report.empty,
        "texts that occur again": report.duplicates,
        "texts that occur with different labels": report.conflicts,
        "texts of the test part that are in the training part too": report.in_both or 0,
        "texts with U+FFFD, where a character was lost": report.broken_characters,
        "texts that look decoded in the wrong encoding (Ã©, â€™)": report.mojibake,
        "texts with NUL characters": report.nul,
    }
    for what, count in counts.items():
        if count:
            yield f"{what}: {count:,}"
    rare = [f"'{label}' {count}" for label, count in report.labels.items() if count < FEW_ROWS]
    if rare:
        yield f"labels of fewer than {FEW_ROWS} texts: {', '.join(rare[:SHOWN])}{' ...' if len(rare) > SHOWN else ''}"
    alike: dict[str, list[str]] = {}
    for label in report.labels:
        alike.setdefault(label.strip().casefold(), []).append(label)
    for labels in alike.values():
        if len(labels) > 1:
            yield f"labels that differ in case or white space alone: {', '.join(map(repr, labels))}"
