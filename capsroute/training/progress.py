"""What a person sees of a run, on stderr: bars on a terminal, a line an epoch elsewhere, or nothing."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, get_args

from capsroute.checks import one_of
from capsroute.training.history import Row

ProgressName = Literal["auto", "rich", "lines", "none"]


class Progress(ABC):
    """Shows a run."""

    @abstractmethod
    def step(self, epoch: int, batch: int, loss: float) -> None:
        """So many batches of the epoch are done."""

    @abstractmethod
    def epoch(self, row: Row, *, best: bool) -> None:
        """An epoch is over."""

    @abstractmethod
    def close(self) -> None:
        """The run is over, well or not."""


class NoProgress(Progress):
    """Shows nothing."""

    def step(self, epoch: int, batch: int, loss: float) -> None:
        pass

    def epoch(self, row: Row, *, best: bool) -> None:
        pass

    def close(self) -> None:
        pass


class LineProgress(NoProgress):
    """A line an epoch."""

    def __init__(self, *, epochs: int) -> None:
        self.epochs = epochs

    def epoch(self, row: Row, *, best: bool) -> None:
        sys.stderr.write(describe(row, epochs=self.epochs, best=best) + "\n")
        sys.stderr.flush()


class RichProgress(Progress):
    """A bar for the epoch, and above it a line for each one that is over."""

    def __init__(self, *, epochs: int, batches: int) -> None:
        # Imported here: rich takes a tenth of a second, which a quiet run need not wait for.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self.epochs = epochs
        self.batches = batches
        self.bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bars.add_task("", total=batches, loss="-")
        self.bars.start()

    def step(self, epoch: int, batch: int, loss: float) -> None:
        self.bars.update(self.task, description=f"epoch {epoch}/{self.epochs}", completed=batch, loss=f"{loss:.4f}")

    def epoch(self, row: Row, *, best: bool) -> None:
        self.bars.console.print(describe(row, epochs=self.epochs, best=best), highlight=False, markup=False)
        self.bars.reset(self.task, loss="-")

    def close(self) -> None:
        self.bars.stop()


@contextmanager
def shown(name: ProgressName, *, epochs: int, batches: int) -> Generator[Progress, None, None]:
    """The progress of that name, closed at the end."""
    one_of("progress", name, get_args(ProgressName))
    if name == "auto":
        name = "rich" if sys.stderr.isatty() else "lines"
    progress: Progress = NoProgress()
    if name == "rich":
        progress = RichProgress(epochs=epochs, batches=batches)
    elif name == "lines":
        progress = LineProgress(epochs=epochs)
    try:
        yield progress
    finally:
        progress.close()


def describe(row: Row, *, epochs: int, best: bool) -> str:
    """A row as a line for a person."""
    parts = [f"epoch {row.epoch}/{epochs}", f"loss {row.loss:.4f}", f"accuracy {row.accuracy:.4f}"]
    if row.valid_loss is not None:
        parts += [f"valid loss {row.valid_loss:.4f}", f"valid accuracy {row.valid_accuracy:.4f}"]
    parts += [f"{row.texts_per_second:,.0f} texts/s", f"{row.seconds:.1f} s"]
    return "  ".join(parts) + ("  best so far" if best else "")
