"""Texts set aside to validate on, with the same share of every class.

>>> rows, aside = hold_out(np.array([0, 0, 0, 0, 1, 1, 1, 1]), share=0.25, seed=0)
>>> len(rows), len(aside)
(6, 2)
"""

import numpy as np
from jaxtyping import Int, Shaped

from capsroute.checks import above


def hold_out(
    targets: Shaped[np.ndarray, "text *class"], *, share: float = 0.1, seed: int
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " aside"]]:
    """Rows to learn from and rows to validate on, each in the order of the input; the same for the same seed.

    Every class gives its share as exactly as whole texts allow, and never its last text. Of several labels a text
    (a table of zeros and ones) the rarest decides to which class it counts.
    """
    above("share", share, 0)
    above("1 - share", 1 - share, 0)
    kinds = targets if targets.ndim == 1 else _rarest(targets)
    _, group, sizes = np.unique(kinds, return_inverse=True, return_counts=True)
    number = round(share * len(kinds))
    if number == 0 or number > len(kinds) - len(sizes):
        raise ValueError(
            f"{len(kinds)} texts of {len(sizes)} classes are too few to set {share:.0%} of them aside: "
            "give a validation part, or another share."
        )
    take = _shares(sizes, number)
    order = np.random.default_rng(seed).permutation(len(kinds))
    # The place of each text within its class, in random order: the first few of a class are set aside.
    place = np.empty(len(kinds), dtype=np.int64)
    for which in range(len(sizes)):
        of_class = order[group[order] == which]
        place[of_class] = np.arange(len(of_class))
    aside = place < take[group]
    return np.flatnonzero(~aside), np.flatnonzero(aside)


def _shares(sizes: Int[np.ndarray, " group"], number: int) -> Int[np.ndarray, " group"]:
    """How many each group gives, so that they make the number: by largest remainder, the last of a group excepted."""
    exact = sizes * (number / sizes.sum())
    take = np.minimum(exact.astype(np.int64), sizes - 1)
    while take.sum() < number:
        missing = np.where(take < sizes - 1, exact - take, -np.inf)
        take[np.argmax(missing)] += 1
    return take


def _rarest(table: Shaped[np.ndarray, "text class"]) -> Int[np.ndarray, " text"]:
    """The rarest label of each text; -1 without any."""
    has = table.astype(bool)
    frequency = np.where(has, has.sum(axis=0), np.iinfo(np.int64).max)
    return np.where(has.any(axis=1), frequency.argmin(axis=1), -1)
