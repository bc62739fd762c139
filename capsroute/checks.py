"""What bad input gets: one sentence that names the argument, what was given and what is expected."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TypeVar

from torch import Tensor

T = TypeVar("T")
MOST_SHOWN = 25


def unknown(what: str, given: object, valid: Collection[str]) -> ValueError:
    """The error for a name that is not in a list: it shows the list and the nearest entry."""
    nearest = get_close_matches(str(given), valid, n=1, cutoff=0.5)
    hint = f"; did you mean '{nearest[0]}'?" if nearest else "."
    shown = ", ".join(list(valid)[:MOST_SHOWN]) or "(there are none)"
    more = f" and {len(valid) - MOST_SHOWN} more" if len(valid) > MOST_SHOWN else ""
    return ValueError(f"unknown {what} {given!r}{hint} Choose from: {shown}{more}.")


def look_up(what: str, name: str, table: Mapping[str, T]) -> T:
    """The entry of a table, or an error that lists the table."""
    if name not in table:
        raise unknown(what, name, table)
    return table[name]


def one_of(what: str, value: str, valid: Collection[str]) -> None:
    """Refuse a value that is not in the list."""
    if value not in valid:
        raise unknown(what, value, valid)


def at_least(what: str, value: float, minimum: float) -> None:
    """Refuse a number under its minimum (NaN too)."""
    if not value >= minimum:
        raise ValueError(f"{what} must be at least {minimum}, but is {value}.")


def above(what: str, value: float, bound: float) -> None:
    """Refuse a number that does not exceed its bound (NaN too)."""
    if not value > bound:
        raise ValueError(f"{what} must be greater than {bound}, but is {value}.")


def has_shape(what: str, tensor: Tensor, **axes: int | None) -> None:
    """Refuse a tensor whose shape differs; an axis given as None may have any size."""
    fits = tensor.ndim == len(axes) and all(
        size is None or size == given for size, given in zip(axes.values(), tensor.shape, strict=True)
    )
    if not fits:
        expected = ", ".join(name if size is None else f"{name}={size}" for name, size in axes.items())
        raise ValueError(f"{what} must have the shape [{expected}], but has {list(tensor.shape)}.")
