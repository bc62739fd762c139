"""What users hand in, made one: texts as a list or a corpus, labels of any type as names, and back again.

>>> labels_of([3, 1]), type_of([3, 1]), names_of([3, 1]), KINDS["int"]("3")
([3, 1], 'int', ['3', '1'], 3)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from capsroute.text.corpus import Corpus

Texts = list[str] | Corpus
Given = Iterable[object] | Corpus  # a list, an array, a Series...; that all are strings is checked

KINDS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda name: name == "True",
}
"""Types of label, which come out as they went in."""


def texts_and_labels(X: Given, y: Any) -> tuple[Texts, list[Any] | None]:
    """Texts as a list or a corpus, and labels from y or the corpus; there are as many of the one as of the other."""
    texts = texts_of(X)
    given = X.labels if isinstance(X, Corpus) and y is None and X.has_labels else y
    labels = None if given is None else labels_of(given)
    if labels is not None and len(labels) != len(texts):
        raise ValueError(f"there are {len(texts)} texts, but {len(labels)} labels.")
    return texts, labels


def with_labels(X: Given, y: Any) -> tuple[Texts, list[Any]]:
    """The same where labels are needed."""
    texts, labels = texts_and_labels(X, y)
    if labels is None:
        raise ValueError("labels are needed: give y, or a corpus that has a label column.")
    return texts, labels


def texts_of(X: Given) -> Texts:
    """Texts as a list or a corpus, all of them strings."""
    if isinstance(X, Corpus):
        return X
    if isinstance(X, str):
        raise ValueError("a list of texts is expected, but one text was given: put it in a list.")
    if isinstance(X, Mapping) or any(hasattr(X, sign) for sign in ("columns", "column_names")):
        raise ValueError('texts are expected, but a table was given: give its column of texts, as in X["text"].')
    texts = _listed("texts", X)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"texts must be strings, but number {row + 1} is {_show(text)}.")
    return texts


def labels_of(y: Any) -> list[Any]:
    """Labels as a list: one of Python's values for each text, or a list of them for each."""
    if isinstance(y, str | Mapping):
        raise ValueError(f"a label for each text is expected, but y is {_show(cast(object, y))}.")
    if getattr(y, "ndim", 1) == 2:
        if y.shape[1] != 1:
            raise ValueError(
                f"labels are expected, but y is a table of the shape {list(y.shape)}: "
                "give one label for each text, or a list of labels for each."
            )
        y = np.asarray(y).ravel()
    labels = _listed("labels", y)
    lists = [_is_list(label) for label in labels]
    if any(lists) and not all(lists):
        raise ValueError("either every text has one label or every text has a list of labels, but here are both.")
    found = [
        [plain(one) for one in label] if many else plain(label) for label, many in zip(labels, lists, strict=True)
    ]
    _check_types(found)
    return found


def type_of(labels: Sequence[Any]) -> str:
    """The type of all labels, by its name in KINDS."""
    return next((type(label).__name__ for _, label in _single(labels)), "str")


def names_of(labels: Sequence[Any]) -> Any:
    """Labels as strings: one for each text, or a list for each."""
    return [list(map(str, label)) if isinstance(label, list) else str(label) for label in labels]  # pyright: ignore


def take(texts: Texts, rows: NDArray[np.int64]) -> Texts:
    """These rows, in this order."""
    if isinstance(texts, Corpus):
        return texts.take(rows)
    return [texts[int(row)] for row in rows]


def as_array(labels: list[Any]) -> NDArray[Any]:
    """Labels as an array that gives them back as they are."""
    return np.array(labels, dtype=object) if all(isinstance(label, str) for label in labels) else np.array(labels)


def plain_settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Settings as values that JSON can hold: numbers of NumPy (of a parameter grid) and dataclasses made plain."""
    if settings is not None and not isinstance(settings, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"settings must be names with values, as in {{'epochs': 5}}, but are {_show(settings)}.")
    return {
        name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else plain(value)
        for name, value in (settings or {}).items()
    }


def _listed(what: str, values: Any) -> list[Any]:
    """A list of what is in an array, a column of Arrow's or anything else that can be gone through."""
    for method in ("to_pylist", "tolist"):
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    if not isinstance(values, Iterable):
        raise ValueError(f"a list of {what} is expected, but {_show(values)} was given.")
    return list(cast("Iterable[Any]", values))


def _is_list(label: Any) -> bool:
    return isinstance(label, list | tuple | set | frozenset | np.ndarray)


def _single(labels: Sequence[Any]) -> Iterable[tuple[int, Any]]:
    """Row and value of every label."""
    for row, label in enumerate(labels):
        for one in cast("list[Any]", label) if isinstance(label, list) else [label]:
            yield row, one


def _check_types(labels: Sequence[Any]) -> None:
    """Refuse what cannot come out as it went in."""
    kind = type_of(labels)
    for row, label in _single(labels):
        if type(label).__name__ not in KINDS or label != label:
            raise ValueError(
                f"labels must be strings, numbers or truth values, but that of text {row + 1} is {_show(label)}."
            )
        if type(label).__name__ != kind:
            raise ValueError(
                f"labels must be of one type, but text 1 has the type {kind} and text {row + 1} has {_show(label)}: "
                "make strings of them."
            )


def _show(value: object) -> str:
    return f"{repr(value)[:60]} of the type {type(value).__name__}"


def plain(value: Any) -> Any:
    """A number or string of NumPy's as one of Python's; anything else as it is."""
    return cast(Any, value.item()) if isinstance(value, np.generic) else value  # pyright: ignore
