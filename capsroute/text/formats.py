"""Which reader a file gets: by the format given, else by its ending, else by its first lines."""

import json
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from capsroute.text.columns import is_known
from capsroute.text.files import FOREIGN, FormatName, ending_format, open_bytes
from capsroute.text.items import FastTextReader, JsonReader, LineReader
from capsroute.text.lines import BOM
from capsroute.text.problems import CorpusError
from capsroute.text.readers import SAMPLE_ROWS, Reader, RowReader, cells_of_line, is_headerless
from capsroute.text.tables import arrow_reader, parquet_reader

UTF16 = (b"\xff\xfe", b"\xfe\xff")


@contextmanager
def open_reader(path: Path | None, format: FormatName | None, given: Sequence[str]) -> Generator[Reader, None, None]:
    """The reader of a file, or of stdin for None; `given` are the column names that the user gave."""
    with open_bytes(path) as opened:
        head = opened.head()
        if not head:
            raise CorpusError(f"'{opened.name}' is empty.")
        foreign = next((what for magic, what in FOREIGN.items() if head.startswith(magic)), None)
        if foreign:
            raise CorpusError(f"'{opened.name}' is {foreign}.")
        format = format or (ending_format(path) if path else None) or sniff(head, given, opened.name)
        if format == "parquet":
            with parquet_reader(opened) as reader:
                yield reader
            return
        if format == "arrow":
            with arrow_reader(opened) as reader:
                yield reader
            return
        if head.startswith(UTF16):
            raise CorpusError(f"'{opened.name}' is in the encoding UTF-16: save it as UTF-8.")
        if format in ("csv", "tsv"):
            yield RowReader(opened, format, given)
        elif format == "jsonl":
            yield JsonReader(opened)
        elif format == "fasttext":
            yield FastTextReader(opened)
        else:
            yield LineReader(opened)


def sniff(head: bytes, given: Sequence[str], name: str) -> FormatName:
    """The format that the first bytes of a file look like; plain lines of text if like nothing else."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if b"\0" in head and not head.startswith(UTF16):
        raise CorpusError(f"'{name}' is not a text file: it holds NUL bytes; name its format with format=...")
    lines = head.removeprefix(BOM).decode("utf-8", "replace").splitlines()[:SAMPLE_ROWS]
    first = next((line for line in lines if line.strip()), "")
    if re.match(r"\s*\[\s*[\[{\"]", "\n".join(lines)) or _is_object(first):
        return "jsonl"
    if any(word.startswith("__label__") for line in lines for word in line.split()):
        return "fasttext"
    for format, delimiters in (("tsv", "\t"), ("csv", ",;|")):
        if any(_is_table(lines, delimiter, given) for delimiter in delimiters):
            return cast(FormatName, format)
    return "csv" if is_known(first) else "lines"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _is_table(lines: Sequence[str], delimiter: str, given: Sequence[str]) -> bool:
    """Whether the first line is a header with a known name, or all lines are `class,text,...`.

    A sentence has a space after its comma: then it is no header, whatever its words are.
    """
    rows = [cells_of_line(line, delimiter) for line in lines[: max(1, len(lines) - 1)]]  # the last may be cut
    if not rows or len(rows[0]) < 2:
        return False
    is_header = all(cell == cell.strip() for cell in rows[0]) and any(map(is_known, rows[0]))
    return is_header or any(cell in given for cell in rows[0]) or is_headerless(rows, given)
