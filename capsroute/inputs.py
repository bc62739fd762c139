"""What users hand in, made one: texts as a list or a corpus, labels of any type as names, and back again.

>>> names_of([3, 1]), type_of([3, 1]), KINDS["int"]("3")
(['3', '1'], 'int', 3)
"""

from collections.abc import Callable, Iterable, Sequence
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
"""Types of label that come out as they went in."""


def type_of(given: Sequence[Any]) -> str:
    """The one type of all labels, by its name in KINDS; `str` for mixed ones."""
    flat: list[Any] = [label for labels in given for label in labels] if has_several(given) else list(given)
    kinds = {type(_plain(label)).__name__ for label in flat}
    kind = kinds.pop() if len(kinds) == 1 else "str"
    return kind if kind in KINDS else "str"


def has_several(given: Sequence[Any]) -> bool:
    """Whether there is a list of labels for each text."""
    return len(given) > 0 and not isinstance(given[0], str) and isinstance(given[0], Sequence | np.ndarray)


def names_of(given: Sequence[Any] | None) -> Any:
    """Labels as strings: one for each text, or a list for each."""
    if given is None:
        raise ValueError("there are no labels: give y, or a corpus that has a label column.")
    if has_several(given):
        return [[name_of(label) for label in labels] for labels in given]
    return [name_of(label) for label in given]


def texts_and_labels(X: Given, y: Any) -> tuple[Texts, Any]:
    """Texts as a list or a corpus, and labels from y or the corpus."""
    if isinstance(X, Corpus):
        return X, X.labels if y is None and X.has_labels else y
    if isinstance(X, str):
        raise ValueError("a list of texts is expected, but one text was given: put it in a list.")
    texts: list[Any] = list(X)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"texts must be strings, but number {row + 1} is {_show(text)}.")
    labels = y.tolist() if hasattr(y, "tolist") else y
    return texts, None if labels is None else list(labels)


def take(texts: Texts, rows: NDArray[np.int64]) -> Texts:
    """These rows, in this order."""
    if isinstance(texts, Corpus):
        return texts.take(rows)
    return [texts[int(row)] for row in rows]


def name_of(label: Any) -> str:
    return str(_plain(label))


def as_array(labels: list[Any]) -> NDArray[Any]:
    return np.array(labels, dtype=object) if all(isinstance(label, str) for label in labels) else np.array(labels)


def _show(value: object) -> str:
    return f"{value!r} of the type {type(value).__name__}"[:80]


def _plain(label: Any) -> Any:
    """A number of NumPy's as one of Python's."""
    return cast(Any, label.item()) if isinstance(label, np.generic) else label  # pyright: ignore
