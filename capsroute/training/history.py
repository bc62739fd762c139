"""What happened in each epoch: a row in memory, a line in history.jsonl, and the learning curves as a picture."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from capsroute.training.files import replace_text

TRAINING, VALIDATION, BEST = "#0b6fa4", "#d1662b", "#555555"
"""Colours of the curves, apart also for those who see no red and green."""


@dataclass(frozen=True)
class Row:
    """An epoch. The validation's measures are None without a validation part."""

    epoch: int  # from 1
    step: int  # steps since the start
    loss: float  # mean over the texts of the epoch, while the weights moved
    accuracy: float  # share of texts with all labels right, while the weights moved
    learning_rate: float  # of the last step
    texts_per_second: float  # in training
    waiting: float  # share of the training time in which the data was waited for
    seconds: float  # training and validation
    valid_loss: float | None = None
    valid_accuracy: float | None = None
    valid_micro_f1: float | None = None
    valid_macro_f1: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)


class HistoryFile:
    """history.jsonl: one line an epoch, appended; of a resumed run written anew, without what will be run again."""

    def __init__(self, path: Path, rows: Sequence[Row]) -> None:
        self.path = path
        replace_text(path, "".join(_line(row) for row in rows))

    def append(self, row: Row) -> None:
        """Add a row at the end."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(row))


def read_history(path: str | Path) -> list[Row]:
    """The rows of a history.jsonl; a last line that a kill has cut short is left out."""
    lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    return [Row(**json.loads(line)) for line in lines if line.endswith("\n")]


def draw_curves(rows: Sequence[Row], path: str | Path, *, best_epoch: int | None = None) -> None:
    """Loss and accuracy by epoch, training and validation, as a PNG.

    Args:
        best_epoch: whose weights were kept; it is marked.
    """
    if not rows:
        raise ValueError("there is no curve to draw: the history is empty.")
    try:
        figure = import_module("matplotlib.figure").Figure(figsize=(9, 3.6), layout="constrained")
    except ModuleNotFoundError as error:
        raise ImportError("drawing curves needs matplotlib: pip install capsroute[paper]") from error
    epochs = [row.epoch for row in rows]
    loss, accuracy = figure.subplots(1, 2)
    for axes, measure in ((loss, "loss"), (accuracy, "accuracy")):
        for part, prefix, colour in (("training", "", TRAINING), ("validation", "valid_", VALIDATION)):
            values = [getattr(row, prefix + measure) for row in rows]
            if None not in values:
                axes.plot(epochs, values, marker="o", markersize=3.5, color=colour, label=part)
        if best_epoch is not None:
            axes.axvline(best_epoch, color=BEST, linestyle=":", zorder=0, label=f"kept: epoch {best_epoch}")
        axes.set_title(measure, loc="left")
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlim(0.5, epochs[-1] + 0.5)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    loss.set_ylim(bottom=0)
    accuracy.yaxis.set_major_formatter(import_module("matplotlib.ticker").PercentFormatter(xmax=1))
    accuracy.legend(frameon=False)
    figure.savefig(Path(path), format="png", dpi=150)


def _line(row: Row) -> str:
    return json.dumps(row.to_json()) + "\n"
