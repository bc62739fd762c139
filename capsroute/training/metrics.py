"""How good predictions are: small functions of numpy arrays.

Targets and predictions are class numbers [text], or for several labels a text tables [text, class] of zeros and ones.
F1 is 2 right / (named + wanted); a mean over classes is over those that occur in the targets or the predictions.

>>> accuracy(np.array([0, 1, 1]), np.array([0, 1, 0]))
0.6666666666666666
"""

import numpy as np
from jaxtyping import Float, Int

from capsroute.checks import at_least

Labels = np.ndarray  # shapes are checked here, with an error of our own


def accuracy(targets: Labels, predicted: Labels) -> float:
    """Share of texts with all labels right."""
    _same_shape(targets, predicted)
    right = targets == predicted
    return float((right if right.ndim == 1 else right.all(axis=1)).mean())


def confusion_matrix(targets: Labels, predicted: Labels, *, classes: int) -> Int[np.ndarray, "class class"]:
    """How many texts of each class (row) were given each class (column)."""
    _same_shape(targets, predicted)
    highest = max(targets.max(initial=0), predicted.max(initial=0))
    at_least("classes", classes, int(highest) + 1)
    table = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(table, (targets, predicted), 1)
    return table


def f1_of_classes(targets: Labels, predicted: Labels, *, classes: int) -> Float[np.ndarray, " class"]:
    """F1 of each class; NaN for one that is neither in the targets nor in the predictions."""
    right, named, wanted = _counts(targets, predicted, classes)
    with np.errstate(invalid="ignore"):
        return 2 * right / (named + wanted)


def macro_f1(targets: Labels, predicted: Labels, *, classes: int) -> float:
    """The mean of the classes' F1."""
    each = f1_of_classes(targets, predicted, classes=classes)
    return float(np.nanmean(each)) if not np.isnan(each).all() else 0.0


def micro_f1(targets: Labels, predicted: Labels) -> float:
    """F1 of all labels together; with one label a text it is the accuracy. 0 where there is no label at all."""
    if targets.ndim == 1:
        return accuracy(targets, predicted)
    right, named, wanted = (counts.sum() for counts in _counts(targets, predicted, targets.shape[1]))
    return float(2 * right / (named + wanted)) if named + wanted else 0.0


def expected_calibration_error(
    probabilities: Float[np.ndarray, "text class"], targets: Int[np.ndarray, " text"], *, bins: int = 15
) -> float:
    """How far the highest probability is from the share of texts that it is right for.

    The mean over texts of |share right - mean probability| within each of `bins` equal parts of (0, 1]
    (Guo et al. 2017, arXiv 1706.04599).
    """
    at_least("bins", bins, 1)
    confidence = probabilities.max(axis=1)
    if confidence.size and not (confidence.min() >= 0 and confidence.max() <= 1 + 1e-6):
        raise ValueError("probabilities must lie in [0, 1]: divide scores by their sum first.")
    right = probabilities.argmax(axis=1) == targets
    inner_edges = np.linspace(0, 1, bins + 1)[1:-1]
    part = (confidence[:, None] > inner_edges).sum(axis=1)  # an edge belongs to the part below it
    surplus = np.bincount(part, weights=right - confidence.astype(np.float64), minlength=bins)
    return float(np.abs(surplus).sum() / len(targets))


def _counts(
    targets: Labels, predicted: Labels, classes: int
) -> tuple[Int[np.ndarray, " class"], Int[np.ndarray, " class"], Int[np.ndarray, " class"]]:
    """For each class: texts that were rightly given it, that were given it, and that have it."""
    if targets.ndim == 1:
        table = confusion_matrix(targets, predicted, classes=classes)
        return table.diagonal(), table.sum(axis=0), table.sum(axis=1)
    _same_shape(targets, predicted)
    has, given = targets.astype(bool), predicted.astype(bool)
    return (has & given).sum(axis=0), given.sum(axis=0), has.sum(axis=0)


def _same_shape(targets: Labels, predicted: Labels) -> None:
    if targets.shape != predicted.shape:
        raise ValueError(
            f"predictions must have the shape of the targets, {list(targets.shape)}, "
            f"but have {list(predicted.shape)}."
        )
    if len(targets) == 0:
        raise ValueError("there are no texts to measure on.")
