# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# (pyarrow ships no types)
"""Cells as a reader gives them -> checked Arrow batches of text, label, id and other columns that are kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from capsroute.text.columns import CellError, Chosen, as_labels, as_text
from capsroute.text.lines import not_utf8
from capsroute.text.problems import Problems
from capsroute.text.readers import Chunk

T = TypeVar("T")
Reasons = dict[int, str]
"""The rows of a chunk that cannot be used, and why."""


class RowBuilder:
    """Makes batches of one schema, and counts what is in them.

    Args:
        keep: further columns, kept as strings under their own names.
    """

    def __init__(self, chosen: Chosen, keep: Sequence[str], problems: Problems) -> None:
        self.chosen = chosen
        self.problems = problems
        self.several = False  # whether any label cell was a list
        self.empty = 0  # texts
        self._strings = {**({} if chosen.id is None else {"id": chosen.id}), **{name: name for name in keep}}

    @property
    def wanted(self) -> list[str]:
        """The columns to ask a reader for: texts, label, id, others."""
        label = [] if self.chosen.label is None else [self.chosen.label]
        return [*self.chosen.text, *label, *self._strings.values()]

    def batch(
        self, chunk: Chunk, class_names: Mapping[str, list[str]], name: str, unit: str
    ) -> pa.RecordBatch | None:
        """The good rows of a chunk of the file `name`. A label is a list here, whatever it was: see `one_label`."""
        bad: Reasons = {}
        cells = iter(chunk.cells)
        texts = _joined([_each(as_text, next(cells), "", bad) for _ in self.chosen.text])
        labels: list[list[str]] | None = None
        if self.chosen.label is not None:
            labels = self._labels(next(cells), class_names.get(self.chosen.label), bad)
        strings = {column: _each(as_text, next(cells), "", bad) for column in self._strings}
        try:
            batch = None if bad else _arrow(texts, labels, strings)
        except UnicodeEncodeError:
            for column in (texts, *((",".join(row) for row in part) for part in [labels or []]), *strings.values()):
                _find_unencodable(column, bad)
            batch = None
        if bad:
            rows = [row for row in range(len(texts)) if row not in bad]
            texts = _only(rows, texts)
            batch = _arrow(
                texts,
                None if labels is None else _only(rows, labels),
                {column: _only(rows, values) for column, values in strings.items()},
            )
            for row in sorted(bad):
                self.problems.add(name, chunk.lines[row], bad[row], unit)
        self.empty += sum(1 for text in texts if not text or text.isspace())
        return batch if texts else None

    def _labels(self, cells: list[object], names: Sequence[str] | None, bad: Reasons) -> list[list[str]]:
        labels = _each(lambda cell: as_labels(cell, names), cells, [], bad)
        for row, found in enumerate(labels):
            if isinstance(cells[row], list | tuple):
                self.several = True
            elif not found:
                bad.setdefault(row, f"has no label in '{self.chosen.label}'")
        return labels


def _each(convert: Callable[[object], T], cells: Sequence[object], otherwise: T, bad: Reasons) -> list[T]:
    """Every cell converted; a bad one leaves its reason."""
    converted: list[T] = []
    for cell in cells:
        try:
            converted.append(convert(cell))
        except CellError as error:
            bad.setdefault(len(converted), str(error))
            converted.append(otherwise)
    return converted


def _joined(parts: list[list[str]]) -> list[str]:
    """Texts of several columns, title and description, as one text."""
    return parts[0] if len(parts) == 1 else [" ".join(filter(None, row)) for row in zip(*parts, strict=True)]


def _only(rows: Sequence[int], values: Sequence[T]) -> list[T]:
    return [values[row] for row in rows]


def _find_unencodable(column: Iterable[str], bad: Reasons) -> None:
    """Note rows with half of a surrogate pair: a byte that was not UTF-8, or an escape in JSON."""
    for row, text in enumerate(column):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            code = ord(text[error.start])
            invalid = 0xDC80 <= code <= 0xDCFF
            bad.setdefault(
                row, not_utf8(code - 0xDC00) if invalid else f"holds half of a surrogate pair (\\u{code:x})"
            )


def _arrow(texts: list[str], labels: list[list[str]] | None, strings: Mapping[str, list[str]]) -> pa.RecordBatch:
    columns: dict[str, pa.Array] = {"text": pa.array(texts, pa.large_string())}
    if labels is not None:
        ends = np.cumsum([0, *map(len, labels)], dtype=np.int32)
        flat = pa.array([label for row in labels for label in row], pa.string())
        columns["label"] = pa.ListArray.from_arrays(pa.array(ends), flat)
    for name, values in strings.items():
        columns[name] = pa.array(values, pa.string())
    return pa.RecordBatch.from_pydict(columns)


def one_label(table: pa.Table) -> pa.Table:
    """The table of a corpus with exactly one label a text: the lists' contents are the labels, nothing is copied."""
    at = table.schema.get_field_index("label")
    flat = [chunk.flatten() for chunk in table.column(at).chunks]
    return table.set_column(at, "label", pa.chunked_array(flat, pa.string()))
