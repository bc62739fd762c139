"""What is wrong with a file or a row of it, and what happens then: fail, or skip and count.

>>> problems = Problems("skip")
>>> problems.add("a.csv", 7, "has 2 fields where 3 are expected")
>>> problems.count, str(problems.first[0])
(1, 'a.csv, line 7: has 2 fields where 3 are expected')
"""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from capsroute.checks import one_of

OnError = Literal["fail", "skip"]

SHOWN = 10
"""How many skipped rows are kept to be shown."""


class CorpusError(ValueError):
    """Data that cannot be used, in one sentence: where, why, and the way out."""


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used."""

    file: str
    line: int
    reason: str
    unit: str = "line"
    """What `line` counts: lines of a text file, rows of a table."""

    def __str__(self) -> str:
        return f"{self.file}, {self.unit} {self.line}: {self.reason}"


class Problems:
    """Bad rows: the first one is an error, or all are counted and the first ten kept."""

    def __init__(self, on_error: OnError) -> None:
        one_of("on_error", on_error, ("fail", "skip"))
        self.on_error: OnError = on_error
        self.count = 0
        self.first: list[BadRow] = []

    def add(self, file: str, line: int, reason: str, unit: str = "line") -> None:
        row = BadRow(file, line, reason, unit)
        if self.on_error == "fail":
            raise CorpusError(f"{row}; mend it, or leave such rows out with on_error='skip' (--on-error skip).")
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(row)


def did_you_mean(given: str, names: Collection[str]) -> str:
    """'; did you mean ...?', or nothing where no name is near."""
    folded = {name.casefold(): name for name in names}
    near = get_close_matches(given.casefold(), folded, n=1, cutoff=0.5)
    return f"; did you mean '{folded[near[0]]}'?" if near else ""
