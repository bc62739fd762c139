"""Texts in, labels out, as they come: what `capsroute predict` reads and writes. Nothing is kept, so a stream may be
endless; what a slow pipe has given so far is answered before more is waited for.

A line of a plain file ends with LF or CRLF; any other character, a CR alone among them, belongs to the text.

>>> print(line("csv", "7", ["good", "bad"], [0.9, 0.1]), end="")
7,good,0.900000,bad,0.100000
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from capsroute.text.files import ending_format, existing, open_bytes
from capsroute.text.reading import ReadOptions, stream_corpus

Format = Literal["jsonl", "csv", "tsv"]
PIECE = 1 << 16
"""Bytes that are read at a time."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Texts that are labelled together, with their ids where the source has some."""

    ids: list[str] | list[None]
    texts: list[str]


def text_blocks(file: str, column: str | None) -> Iterator[Block]:
    """The texts of a table, or of a plain file a text a line; "-" is standard input, a table if a column is named."""
    path = None if file == "-" else existing(Path(file))
    table = path is not None and (path.is_dir() or ending_format(path) is not None)
    return _rows(file, column) if table or column is not None else _plain(path)


def line(form: str, name: str | None, labels: Sequence[str], probabilities: Sequence[float] | None) -> str:
    """One line of output: the id where there is one, and each label with its probability where it is asked for."""
    if form == "jsonl":
        row: dict[str, Any] = {} if name is None else {"id": name}
        row["labels"] = list(labels)
        if probabilities is not None:
            row["probabilities"] = [round(value, 6) for value in probabilities]
        return json.dumps(row, ensure_ascii=False) + "\n"
    cells = [] if name is None else [name]
    for place, label in enumerate(labels):
        cells += [label] if probabilities is None else [label, f"{probabilities[place]:.6f}"]
    stream = io.StringIO()
    csv.writer(stream, delimiter="," if form == "csv" else "\t", lineterminator="\n").writerow(cells)
    return stream.getvalue()


def _rows(file: str, column: str | None) -> Iterator[Block]:
    for part in stream_corpus(file, ReadOptions(text=column, labels="unread")):
        texts = part.texts()
        has_id = "id" in part.table.column_names  # pyright: ignore[reportUnknownMemberType]
        yield Block(part.column("id") if has_id else [None] * len(texts), texts)


def _plain(path: Path | None) -> Iterator[Block]:
    number = 0
    with open_bytes(path) as opened:
        for block in _whole_lines(opened.stream):
            texts: list[str] = []
            for content in block:
                number += 1
                try:
                    texts.append(content.removesuffix(b"\r").decode())
                except UnicodeDecodeError as error:
                    raise ValueError(f"line {number} of '{opened.name}' is not UTF-8: convert it first.") from error
            yield Block([None] * len(texts), texts)


def _whole_lines(stream: io.BufferedReader) -> Iterator[list[bytes]]:
    """The lines that each read completes; the last one may lack its end."""
    begun: list[bytes] = []
    mark = True
    while piece := stream.read1(PIECE):
        if mark:
            piece, mark = piece.removeprefix(BYTE_ORDER_MARK), False
        first, *others = piece.split(b"\n")
        begun.append(first)
        if others:
            yield [b"".join(begun), *others[:-1]]
            begun = others[-1:]
    last = b"".join(begun)
    if last:
        yield [last]
