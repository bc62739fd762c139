"""Label names <-> class numbers, for one label a text or several.

>>> labels = Labels.of(["10", "9", "9"])
>>> labels.names, labels.encode(["9", "10"]).tolist(), labels.decode([1])
(['9', '10'], [0, 1], ['10'])
>>> several = Labels.of([["grain", "wheat"], []])
>>> several.encode([["wheat"], []]).tolist(), several.decode([[0, 1], [1, 1]])
([[0.0, 1.0], [0.0, 0.0]], [['wheat'], ['grain', 'wheat']])
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from numpy.typing import NDArray
from torch import Tensor

from capsroute.checks import unknown
from capsroute.text.corpus import Corpus

LabelLists = Sequence[str] | Sequence[Sequence[str]]
"""The label of each text, or the list of its labels."""


class LabelError(ValueError):
    """Labels that nothing can be learned from, or that were not there when it was learned."""


@dataclass(frozen=True)
class Labels:
    """The classes in the order of the scores.

    Args:
        names: as the user wrote them; numbers by value, then the rest by letter.
        several: whether a text may have several labels, or none.
    """

    names: list[str]
    several: bool = False

    @staticmethod
    def of(labels: LabelLists | Corpus) -> "Labels":
        """The different labels of these texts."""
        given, several = _lists(labels)
        found = set[str]().union(*given) if several else set(cast("Sequence[str]", given))
        names = sorted(found, key=_natural)
        if len(names) < 2 and not (several and names):
            have = f"all texts have '{names[0]}'" if names else "there are none"
            raise LabelError(f"there must be at least two different labels to tell apart, but {have}.")
        return Labels(names, several)

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, labels: LabelLists | Corpus) -> Tensor:
        """Class numbers, int64 [text]; with several labels a table of zeros and ones, float [text, class]."""
        where = f"'{labels.file}', " if isinstance(labels, Corpus) else ""
        number = {name: place for place, name in enumerate(self.names)}
        given, several = _lists(labels)
        if several and not self.several:
            raise LabelError("these texts have lists of labels, but training saw one label a text.")
        if not self.several:
            one = cast("Sequence[str]", given)
            try:
                return torch.tensor([number[label] for label in one], dtype=torch.int64)
            except KeyError:
                row = next(row for row, label in enumerate(one) if label not in number)
                raise self._unseen(one[row], row, where) from None
        rows = given if several else [[label] for label in cast("Sequence[str]", given)]
        table = torch.zeros(len(rows), len(self.names))
        for row, names in enumerate(rows):
            for label in names:
                if label not in number:
                    raise self._unseen(label, row, where)
                table[row, number[label]] = 1
        return table

    def decode(self, numbers: Tensor | NDArray[Any] | Sequence[int] | Sequence[Sequence[int]]) -> LabelLists:
        """Class numbers -> names; the rows of a table of zeros and ones -> lists of names."""
        plain = cast("list[int] | list[list[int]]", numbers.tolist() if hasattr(numbers, "tolist") else numbers)  # pyright: ignore
        if not self.several:
            return [self.names[number] for number in cast("list[int]", plain)]
        return [
            [name for name, has in zip(self.names, row, strict=True) if has] for row in cast("list[list[int]]", plain)
        ]

    def to_json(self) -> dict[str, Any]:
        """For json.dumps."""
        return {"names": list(self.names), "several": self.several}

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> "Labels":
        """What `to_json` gave."""
        names: list[Any] = stored["names"] if isinstance(stored.get("names"), list) else []
        several = stored.get("several")
        sound = all(isinstance(name, str) for name in names) and 0 < len(set(names)) == len(names)
        if not sound or not isinstance(several, bool):
            raise LabelError("labels are stored as {'names': [different names], 'several': true or false}.")
        return Labels(list(names), several)

    def _unseen(self, label: str, row: int, where: str) -> LabelError:
        return LabelError(f"{where}row {row + 1}: {unknown('label', label, self.names)}")


def _lists(labels: LabelLists | Corpus) -> tuple[Sequence[Sequence[str]] | Sequence[str], bool]:
    """The labels, and whether each text has a list of them."""
    if isinstance(labels, Corpus):
        return labels.labels, labels.several_labels
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        raise LabelError("either every text has one label or every text has a list of labels, but here are both.")
    return labels, kinds == {False}


def _natural(name: str) -> tuple[object, ...]:
    """Numbers by their value and before all else; digits within a name by their value too."""
    try:
        value = float(name)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return (0, value, name)
    parts: Iterable[str] = re.split(r"([0-9]+)", name)
    return (1, [(0, int(part), "") if part.isdecimal() else (1, 0, part.casefold()) for part in parts], name)
