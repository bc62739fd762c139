"""A reader's interface, and the readers of tables that are text: csv and tsv.

    csv       quotes doubled inside quotes, line breaks inside quotes (RFC 4180); comma, semicolon, tab or bar
    tsv       one line is one row; quotes around a whole cell are taken off

A reader first knows its columns, then gives the cells of the columns that are wanted, some thousand rows at a time,
with the line at which each row begins. A row that cannot be read goes to `Problems`.
"""

import csv
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import chain, islice
from typing import NamedTuple

from capsroute.text.columns import is_known
from capsroute.text.files import FormatName, Opened
from capsroute.text.lines import BOM, Bad, not_utf8, text_lines
from capsroute.text.problems import CorpusError, Problems

CHUNK_ROWS = 8192
CHUNK_CHARACTERS = 1 << 23
"""A chunk ends at whichever comes first: this bounds the memory that long documents take."""
SAMPLE_ROWS = 50
"""Rows that are looked at to know the columns."""
LONGEST_CELL = 1 << 26

csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))  # one limit for the process; its default is 128 KiB


class Chunk(NamedTuple):
    """Some rows of a file: the line of each, and the cells of each column that was asked for."""

    lines: list[int]
    cells: list[list[object]]


class Reader(ABC):
    """A file of one format."""

    unit = "line"
    headerless = False

    def __init__(self, name: str, format: FormatName, columns: Sequence[str]) -> None:
        self.name = name
        self.format: FormatName = format
        self.columns = list(columns)
        self.class_names: dict[str, list[str]] = {}  # of the columns that hold class numbers

    @abstractmethod
    def chunks(self, wanted: Sequence[str], problems: Problems) -> Iterator[Chunk]:
        """The cells of the columns wanted."""


class RowReader(Reader):
    """csv and tsv: the first row names the columns, unless it is a row of data (see `is_headerless`)."""

    def __init__(self, opened: Opened, format: FormatName, given: Sequence[str]) -> None:
        rows = csv_rows(opened) if format == "csv" else tsv_rows(opened)
        sample = list(islice(rows, SAMPLE_ROWS))
        good = [row for _, row in sample if not isinstance(row, Bad)]
        if sample and isinstance(sample[0][1], Bad):
            raise CorpusError(f"'{opened.name}' is no {format} file: its first line {sample[0][1]}.")
        if not good:
            raise CorpusError(f"'{opened.name}' is empty: it has no rows.")
        self.headerless = is_headerless(good, given)
        if not self.headerless and (reason := _not_text(good[0])):
            raise CorpusError(f"'{opened.name}' is no {format} file: its first line {reason}.")
        columns = [str(number) for number, _ in enumerate(good[0], 1)] if self.headerless else good[0]
        self._rows = chain(sample if self.headerless else sample[1:], rows)
        super().__init__(opened.name, format, columns)

    def chunks(self, wanted: Sequence[str], problems: Problems) -> Iterator[Chunk]:
        positions = [self.columns.index(name) for name in wanted]
        width = len(self.columns)
        lines: list[int] = []
        rows: list[list[str]] = []
        size = 0
        for line, row in self._rows:
            if isinstance(row, Bad):
                problems.add(self.name, line, str(row))
            elif len(row) != width:
                problems.add(self.name, line, f"has {len(row)} fields where {width} are expected")
            else:
                lines.append(line)
                rows.append(row)
                size += sum(map(len, row))
                if len(rows) == CHUNK_ROWS or size > CHUNK_CHARACTERS:
                    yield Chunk(lines, [[row[at] for row in rows] for at in positions])
                    lines, rows, size = [], [], 0
        if rows:
            yield Chunk(lines, [[row[at] for row in rows] for at in positions])


def _not_text(cells: Sequence[str]) -> str | None:
    """Why these cannot be the names of columns, if they cannot."""
    for character in "".join(cells):
        if "\udc80" <= character <= "\udcff":
            return not_utf8(ord(character) - 0xDC00)
        if character == "\0":
            return "holds NUL bytes, so this is no text"
    return None


def is_headerless(rows: Sequence[Sequence[str]], given: Sequence[str]) -> bool:
    """Whether the first row is data: columns are given by number, or it is `class,text,...` with a class number.

    One known name does not make such a row a header, for a title may be "Review".
    """
    names = [name for name in given if not name.isdecimal()]
    if any(cell in names for cell in rows[0]):
        return False
    by_class = len(rows[0]) > 1 and all(row[0].isdecimal() for row in rows)
    if sum(map(is_known, rows[0])) > by_class:
        return False
    return by_class or (len(given) > 0 and not names)


def csv_rows(opened: Opened) -> Iterator[tuple[int, list[str] | Bad]]:
    """The rows of a csv file with the line at which each begins; blank lines are no rows."""
    first = re.split(rb"[\r\n]", opened.head().removeprefix(BOM), maxsplit=1)[0].decode("utf-8", "replace")
    # A byte that is not UTF-8 becomes half a surrogate pair, which Arrow refuses later: good rows cost no check.
    text = TextIOWrapper(opened.stream, "utf-8-sig", errors="surrogateescape", newline="")
    reader = csv.reader(text, delimiter=delimiter_of(first), strict=True)
    begin = 1
    try:
        while True:
            try:
                for row in reader:
                    if row:
                        yield begin, row
                    begin = reader.line_num + 1
                return
            except csv.Error as error:
                lines = f", up to line {reader.line_num}" if reader.line_num > begin else ""
                yield begin, Bad(_csv_reason(str(error)) + lines)
                begin = reader.line_num + 1
    finally:
        with suppress(ValueError):  # closed already
            text.detach()  # the stream is closed by who opened it


def _csv_reason(reason: str) -> str:
    """The csv module's errors in plain words."""
    if "end of data" in reason or "limit" in reason:
        return "opens a quote that is never closed"
    if "expected after" in reason:
        return "has a quote inside a quoted field that is not doubled"
    return f"is not csv ({reason})"


def delimiter_of(header: str) -> str:
    """The delimiter that makes a known column name appear in the header; a comma if none does."""
    for delimiter in ",\t;|":
        cells = cells_of_line(header, delimiter)
        if len(cells) > 1 and any(is_known(cell) for cell in cells):
            return delimiter
    return ","


def cells_of_line(line: str, delimiter: str) -> list[str]:
    """One line as a row, whatever its quotes."""
    try:
        return next(iter(csv.reader([line], delimiter=delimiter)), list[str]())
    except csv.Error:  # a NUL, which some versions refuse
        return [line]


def tsv_rows(opened: Opened) -> Iterator[tuple[int, list[str] | Bad]]:
    """The rows of a tsv file; blank lines are no rows."""
    for number, line in text_lines(opened):
        if isinstance(line, Bad):
            yield number, line
        elif line:
            cells = line.split("\t")
            yield number, [_unquoted(cell) for cell in cells] if '"' in line else cells


def _unquoted(cell: str) -> str:
    """A cell without the quotes around it, if they are around the whole of it."""
    inner = cell[1:-1]
    if len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return cell
