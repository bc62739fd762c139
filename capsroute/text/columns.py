"""Which column holds the text and which the label, and how a cell becomes text or label.

Names are compared without case, spaces and underscores: `Review Text` is `reviewtext`. Those given by the user win;
else the first of the lists below that a file has, in the order of the lists.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from capsroute.text.problems import CorpusError, did_you_mean

TEXT_NAMES = (
    *("text", "content", "reviewtext", "review", "reviewbody", "body", "sentence", "tweet", "comment"),
    *("commenttext", "message", "document", "utterance", "query", "question", "headline", "abstract", "snippet"),
    *("post", "phrase", "input", "description", "title"),
)
LABEL_NAMES = (
    *(
        "label",
        "labels",
        "class",
        "classindex",
        "category",
        "categories",
        "sentiment",
        "emotion",
        "rating",
        "ratings",
    ),
    *("stars", "starrating", "overall", "score", "topic", "topics", "target", "intent", "polarity", "genre", "tag"),
    *("tags", "y", "output", "classname"),
)
ID_NAMES = ("id", "uid", "uuid", "guid", "textid", "docid", "documentid", "tweetid", "reviewid", "rowid", "")

TextNames = str | Sequence[str]


@dataclass(frozen=True)
class Chosen:
    """The columns that are read."""

    text: tuple[str, ...]  # several are joined with a space
    label: str | None
    id: str | None
    guessed: tuple[str, ...]  # which of "text", "label" nobody gave

    @property
    def text_name(self) -> str:
        return "+".join(self.text)


def is_known(name: str) -> bool:
    """Whether a name is one of those that tell the text or the label."""
    return plain(name) in TEXT_NAMES or plain(name) in LABEL_NAMES


def plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


@runtime_checkable
class Header(Protocol):
    """What a reader knows of its columns."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def headerless(self) -> bool:
        """Whether the columns are numbers, because the file does not name them."""
        ...


def choose(
    header: Header, text: TextNames | None, label: str | None, *, unread: bool = False, needed: bool = False
) -> Chosen:
    """The columns given, and for what is not given a guess; a label that is `needed` must be found."""
    columns, file = header.columns, header.name
    if label is not None:
        _check(columns, label, "the label", file)
    numbered = header.headerless and text is None and label in (None, columns[0])
    if text is not None:
        texts = _given_texts(columns, text, file)
    else:
        texts = tuple(columns[1:]) if numbered else _guess_texts(columns, label, file)
    if label in texts:
        raise CorpusError(f"'{file}': text and label are both read from the column '{label}'; name two columns.")
    found = label
    if label is None and not unread:
        found = columns[0] if numbered else _first(columns, LABEL_NAMES, without=texts)
    if needed and found is None:
        raise CorpusError(f"'{file}' does not tell which column holds the label: {_name_it(columns, 'label')}")
    guessed = [*(["text"] if text is None else []), *(["label"] if label is None and found is not None else [])]
    return Chosen(texts, found, _first(columns, ID_NAMES, without=(*texts, found)), tuple(guessed))


def _name_it(columns: Sequence[str], what: str) -> str:
    return f"name it with {what}=... (--{what}), one of {_list(columns)}."


def _given_texts(columns: Sequence[str], text: TextNames, file: str) -> tuple[str, ...]:
    names = (text,) if isinstance(text, str) else tuple(text)
    if isinstance(text, str) and text not in columns and "+" in text:
        names = tuple(text.split("+"))
    if not names:
        raise CorpusError("text must name at least one column, but names none.")
    for name in names:
        _check(columns, name, "the text", file)
    return names


def _guess_texts(columns: Sequence[str], label: str | None, file: str) -> tuple[str, ...]:
    name = _first(columns, TEXT_NAMES, without=(label,))
    if name is None:
        rest = [name for name in columns if name != label and plain(name) not in (*LABEL_NAMES, *ID_NAMES)]
        if len(rest) == 1:
            return (rest[0],)
        raise CorpusError(
            f"'{file}' does not tell which column holds the text: {_name_it(columns, 'text').removesuffix('.')}; "
            "if its first line is a row already, its columns are called '1', '2' and so on."
        )
    title = _first(columns, ("title",), without=(label,))
    return (title, name) if plain(name) == "description" and title is not None else (name,)


def check_columns(columns: Sequence[str], names: Sequence[str], file: str) -> None:
    """Refuse a name that no column has."""
    for name in names:
        _check(columns, name, "it", file)


def _check(columns: Sequence[str], name: str, what: str, file: str) -> None:
    if name not in columns:
        hint = did_you_mean(name, columns) or "."
        raise CorpusError(f"'{file}' has no column '{name}' for {what}{hint} It has: {_list(columns)}.")
    if columns.count(name) > 1:
        raise CorpusError(f"'{file}' has {columns.count(name)} columns called '{name}': rename all but one.")


def _first(columns: Sequence[str], names: Sequence[str], *, without: Sequence[str | None]) -> str | None:
    by_name = {plain(column): column for column in reversed(columns) if column not in without}
    return next((by_name[name] for name in names if name in by_name), None)


def _list(columns: Sequence[str]) -> str:
    return ", ".join(f"'{column}'" for column in columns) or "(it has none)"


class CellError(ValueError):
    """A cell that is no text or no label."""


def as_text(cell: object) -> str:
    """A cell as text; nothing is the empty text."""
    if isinstance(cell, str):
        return cell
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool | int | float):
        return _number(cell)
    if isinstance(cell, bytes):
        raise CellError("the text is not valid UTF-8")
    raise CellError(f"the text is a {type(cell).__name__}, not a string")


def as_labels(cell: object, names: Sequence[str] | None = None) -> list[str]:
    """The labels of a cell: one for a string or a number, as many as it has for a list, none where it is empty.

    Numbers are written without a needless `.0`, so that 5 and 5.0 are one label. `names` are those of label numbers.
    """
    if isinstance(cell, str):
        return [cell] if cell.strip() else []
    if isinstance(cell, list | tuple):
        parts = [as_labels(part, names) for part in cast("Sequence[object]", cell)]
        if any(len(part) != 1 for part in parts):
            raise CellError("the list of labels holds an empty one")
        return list(dict.fromkeys(part[0] for part in parts))
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return []
    if names is not None and isinstance(cell, int):
        if not -1 <= cell < len(names):
            raise CellError(f"the label number {cell} has no name, there are {len(names)} names")
        return [] if cell == -1 else [names[cell]]  # -1 says that nobody labelled it
    if isinstance(cell, bool | int | float):
        return [_number(cell)]
    if isinstance(cell, bytes):
        raise CellError("the label is not valid UTF-8")
    raise CellError(f"the label is a {type(cell).__name__}, not a string, a number or a list of these")


def _number(cell: bool | int | float) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
