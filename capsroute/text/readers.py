"""The formats that are read line by line: csv, tsv, jsonl, fastText and plain lines.

    csv       quotes doubled inside quotes, line breaks inside quotes (RFC 4180); comma, semicolon, tab or bar
    tsv       one line is one row; quotes around a whole cell are taken off
    jsonl     one object a line
    fasttext  __label__x __label__y and the words
    lines     one text a line

A reader first knows its columns, then gives the cells of the columns that are wanted, some thousand rows at a time,
with the line at which each row begins. A row that cannot be read goes to `Problems`.
"""

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import chain, islice
from typing import NamedTuple, cast

from capsroute.text.columns import is_known
from capsroute.text.files import FormatName, Opened
from capsroute.text.problems import CorpusError, Problems

CHUNK_ROWS = 8192
CHUNK_CHARACTERS = 1 << 23
"""A chunk ends at whichever comes first: this bounds the memory that long documents take."""
SAMPLE_ROWS = 50
"""Rows that are looked at to know the columns."""
LONGEST_CELL = 1 << 26
BOM = b"\xef\xbb\xbf"

csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))  # one limit for the process; its default is 128 KiB


class Chunk(NamedTuple):
    """Some rows of a file: the line of each, and the cells of each column that was asked for."""

    lines: list[int]
    cells: list[list[object]]


class Bad(str):
    """In place of a row: why there is none."""


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
    first = opened.head().removeprefix(BOM).split(b"\n", 1)[0].decode("utf-8", "replace")
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
    return next(iter(csv.reader([line], delimiter=delimiter)), list[str]())


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


def text_lines(opened: Opened) -> Iterator[tuple[int, str | Bad]]:
    """The lines of a file, numbered from 1, without their ends."""
    for number, line in enumerate(opened.stream, 1):
        start = line.removeprefix(BOM) if number == 1 else line
        try:
            yield number, start.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            yield number, Bad(not_utf8(error.object[error.start]))


def not_utf8(byte: int) -> str:
    """Why a row is refused that holds this byte."""
    return f"is not valid UTF-8 (byte 0x{byte:02x}; a file from Windows may be in the encoding cp1252)"


Item = tuple[object, ...]


class ItemReader(Reader):
    """jsonl, fastText and plain lines: each line is parsed by itself."""

    def chunks(self, wanted: Sequence[str], problems: Problems) -> Iterator[Chunk]:
        lines: list[int] = []
        items: list[Item] = []
        size = 0
        for line, length, item in self.items(wanted):
            if isinstance(item, Bad):
                problems.add(self.name, line, str(item))
                continue
            lines.append(line)
            items.append(item)
            size += length
            if len(items) == CHUNK_ROWS or size > CHUNK_CHARACTERS:
                yield Chunk(lines, [list(cells) for cells in zip(*items, strict=True)])
                lines, items, size = [], [], 0
        if items:
            yield Chunk(lines, [list(cells) for cells in zip(*items, strict=True)])

    @abstractmethod
    def items(self, wanted: Sequence[str]) -> Iterator[tuple[int, int, Item | Bad]]:
        """Line number, length of the line, and the cells wanted."""


class JsonReader(ItemReader):
    """One JSON object a line; a key that a row lacks is an empty cell."""

    def __init__(self, opened: Opened) -> None:
        if opened.head().removeprefix(BOM).lstrip().startswith(b"["):
            raise CorpusError(
                f"'{opened.name}' is one JSON array: write it as one object a line (jq -c '.[]' does that)."
            )
        lines = text_lines(opened)
        sample = list(islice(lines, SAMPLE_ROWS))
        objects = [
            line if isinstance(line, Bad) else _object(line)
            for _, line in sample
            if isinstance(line, Bad) or line.strip()
        ]
        keys = dict.fromkeys(key for found in objects if not isinstance(found, Bad) for key in found)
        if not keys:
            reason = f"no jsonl file: its first line {objects[0]}" if objects else "empty: it has no rows"
            raise CorpusError(f"'{opened.name}' is {reason}.")
        self._lines = chain(sample, lines)
        super().__init__(opened.name, "jsonl", list(keys))

    def items(self, wanted: Sequence[str]) -> Iterator[tuple[int, int, Item | Bad]]:
        for number, line in self._lines:
            if isinstance(line, Bad):
                yield number, 0, line
            elif line and not line.isspace():
                found = _object(line)
                good = found if isinstance(found, Bad) else tuple([found.get(name) for name in wanted])
                yield number, len(line), good


def _object(line: str) -> dict[str, object] | Bad:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        return Bad(f"is not valid JSON ({error.msg} at character {error.pos + 1})")
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 10,000 nested lists
        return Bad(f"is not usable JSON ({error})")
    if not isinstance(found, dict):
        return Bad(f"is a JSON {type(found).__name__}, not an object with names")
    return cast("dict[str, object]", found)


class FastTextReader(ItemReader):
    """`__label__x` words, wherever in the line they stand, are its labels; the rest is its text."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        super().__init__(opened.name, "fasttext", ("label", "text"))

    def items(self, wanted: Sequence[str]) -> Iterator[tuple[int, int, Item | Bad]]:
        for number, line in text_lines(self._opened):
            if isinstance(line, Bad):
                yield number, 0, line
            elif line and not line.isspace():
                label, text = _fasttext_cells(line)
                yield number, len(line), tuple([text if name == "text" else label for name in wanted])


LABEL_WORD = re.compile(r"(?<!\S)__label__(\S*)\s*")


def _fasttext_cells(line: str) -> tuple[object, str]:
    labels = LABEL_WORD.findall(line)
    text = LABEL_WORD.sub("", line) if labels else line
    return (labels[0] if len(labels) == 1 else labels or None), text


class LineReader(ItemReader):
    """One text a line, empty ones included, without labels."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        super().__init__(opened.name, "lines", ("text",))

    def items(self, wanted: Sequence[str]) -> Iterator[tuple[int, int, Item | Bad]]:
        for number, line in text_lines(self._opened):
            if isinstance(line, Bad):
                yield number, 0, line
            else:
                yield number, len(line), tuple([line for _ in wanted])
