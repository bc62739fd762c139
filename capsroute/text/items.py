"""The formats of which each line is read by itself: jsonl, fastText and plain lines.

jsonl     one object a line
fasttext  __label__x __label__y and the words
lines     one text a line
"""

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import cast

from capsroute.text.files import Opened
from capsroute.text.lines import BOM, Bad, text_lines
from capsroute.text.problems import CorpusError, Problems
from capsroute.text.readers import CHUNK_CHARACTERS, CHUNK_ROWS, SAMPLE_ROWS, Chunk, Reader

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
            reason = (
                f"no jsonl file, which has one object a line: its first line {objects[0]}"
                if objects
                else "empty: it has no rows"
            )
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
