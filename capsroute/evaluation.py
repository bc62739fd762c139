"""How good a classifier is on labelled texts: measures, each class, what is confused, the worst mistakes.

>>> report = measure(["a", "b"], np.array([[0.9, 0.1], [0.6, 0.4]]), classes=["a", "b"])
>>> report.accuracy, report.mistakes[0].row
(0.5, 1)
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capsroute.explain.render import one_line
from capsroute.training.metrics import (
    accuracy,
    confusion_matrix,
    expected_calibration_error,
    f1_of_classes,
    macro_f1,
    micro_f1,
)

MOST_INCHES_A_CELL, LEAST_INCHES_A_CELL = 0.6, 0.27
LONGEST_NAME, SHORT_NAME = 32, 9
"""Letters after which a name is cut, and up to which it fits under its column."""


@dataclass(frozen=True)
class ClassReport:
    """One class: the share of the texts named it that have it (precision), and of those that have it (recall)."""

    label: str
    texts: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Mistake:
    """A text that was given another label with confidence."""

    row: int
    label: str
    predicted: str
    probability: float


@dataclass(frozen=True)
class Report:
    """All measures of one run over labelled texts."""

    texts: int
    accuracy: float
    macro_f1: float
    micro_f1: float
    calibration_error: float | None  # not defined for several labels a text
    classes: list[ClassReport]
    confusion: list[list[int]] | None  # rows: the label, columns: what was predicted
    mistakes: list[Mistake]

    def to_json(self) -> dict[str, Any]:
        """For json.dumps."""
        return asdict(self)


def measure(
    labels: Sequence[str] | Sequence[Sequence[str]],
    probabilities: NDArray[np.float64],
    *,
    classes: Sequence[str],
    thresholds: Sequence[float] | None = None,
    worst: int = 20,
) -> Report:
    """Compare scores with the labels.

    Args:
        thresholds: the score from which a text has each label; None: one label a text, the highest.
        worst: how many mistakes to keep, those with the highest probability first.
    """
    number = {name: place for place, name in enumerate(classes)}
    if thresholds is not None:
        return _several(labels, probabilities >= np.array(thresholds), number)
    targets = np.array([number[str(label)] for label in labels], dtype=np.int64)
    predicted = probabilities.argmax(axis=1)
    matrix = confusion_matrix(targets, predicted, classes=len(classes))
    return Report(
        texts=len(targets),
        accuracy=accuracy(targets, predicted),
        macro_f1=macro_f1(targets, predicted, classes=len(classes)),
        micro_f1=micro_f1(targets, predicted),
        calibration_error=expected_calibration_error(probabilities, targets),
        classes=_each_class(list(classes), matrix, f1_of_classes(targets, predicted, classes=len(classes))),
        confusion=matrix.tolist(),
        mistakes=_worst(targets, predicted, probabilities, list(classes), worst),
    )


def draw_confusion(report: Report, file: str | Path) -> None:
    """The confusion matrix as a picture: shares of each row, so that rare classes can be read too."""
    if report.confusion is None:
        raise ValueError("there is no confusion matrix where a text may have several labels.")
    try:
        figure_class: Any = import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise ValueError("pictures need matplotlib: pip install capsroute[paper].") from error
    counts = np.array(report.confusion)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [one_line(row.label, LONGEST_NAME) for row in report.classes]
    # Cells are as large as their numbers need; the sheet grows around them, whatever the names take.
    side = max(MOST_INCHES_A_CELL * 3, len(names) * (MOST_INCHES_A_CELL if len(names) <= 20 else LEAST_INCHES_A_CELL))
    axes: Any = figure_class(figsize=(side, side)).add_axes((0, 0, 1, 1))
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    slanted = any(len(name) > SHORT_NAME for name in names) or len(names) > 8
    turned = {"rotation": 90 if len(names) > 20 else 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    if len(names) > 20:
        turned["va"] = "center"
    axes.set_xticks(range(len(names)), names, fontsize=9, parse_math=False, **turned)
    axes.set_yticks(range(len(names)), names, fontsize=9, parse_math=False)
    axes.tick_params(length=0)
    axes.set_xticks(np.arange(1, len(names)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(names)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_color("#c9d0d8")
    axes.set_xlabel("predicted label", labelpad=8)
    axes.set_ylabel("true label", labelpad=8)
    title = f"{report.accuracy:.1%} of {report.texts:,} texts are right\n"
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold")
    note = "numbers: texts; colour: share of the row"
    axes.annotate(note, (0, 1), (0, 5), "axes fraction", "offset points", fontsize=9, color="#5a6470")
    for row, column in zip(*counts.nonzero(), strict=True):
        count, share = counts[row, column], shares[row, column]
        size = 9 if len(names) <= 20 and count < 100_000 else 6
        axes.text(
            column,
            row,
            f"{count:,}",
            ha="center",
            va="center",
            color="white" if share > 0.5 else "#1b1f24",
            fontsize=size,
        )
    axes.figure.savefig(file, dpi=150, bbox_inches="tight", pad_inches=0.25)


def _several(labels: Any, table: NDArray[np.bool_], number: dict[str, int]) -> Report:
    targets = np.zeros(table.shape, dtype=np.int64)
    for row, given in enumerate(labels):
        targets[row, [number[str(label)] for label in given]] = 1
    found = table.astype(np.int64)
    names = list(number)
    right, named, has = (found * targets).sum(0), found.sum(0), targets.sum(0)
    each = f1_of_classes(targets, found, classes=len(names))
    return Report(
        texts=len(targets),
        accuracy=accuracy(targets, found),
        macro_f1=macro_f1(targets, found, classes=len(names)),
        micro_f1=micro_f1(targets, found),
        calibration_error=None,
        classes=[
            ClassReport(name, int(has[c]), _ratio(right[c], named[c]), _ratio(right[c], has[c]), _number(each[c]))
            for c, name in enumerate(names)
        ],
        confusion=None,
        mistakes=[],
    )


def _each_class(names: list[str], matrix: NDArray[Any], f1: NDArray[np.float64]) -> list[ClassReport]:
    right, named, has = matrix.diagonal(), matrix.sum(axis=0), matrix.sum(axis=1)
    return [
        ClassReport(name, int(has[c]), _ratio(right[c], named[c]), _ratio(right[c], has[c]), _number(f1[c]))
        for c, name in enumerate(names)
    ]


def _worst(
    targets: NDArray[np.int64],
    predicted: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    names: list[str],
    worst: int,
) -> list[Mistake]:
    wrong = np.flatnonzero(targets != predicted)
    sure = probabilities[wrong, predicted[wrong]]
    order = wrong[np.argsort(-sure, kind="stable")][:worst]
    return [
        Mistake(int(row), names[targets[row]], names[predicted[row]], float(probabilities[row, predicted[row]]))
        for row in order
    ]


def _ratio(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
