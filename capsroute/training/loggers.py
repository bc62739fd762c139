"""Sending the history elsewhere while it happens: TensorBoard, Weights & Biases, or anything with two methods."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from capsroute.training.history import Row


@runtime_checkable
class Logger(Protocol):
    """Receives every row of the history of one run, which closes it however it ends."""

    def log(self, row: Row) -> None:
        """Take a row."""
        ...

    def close(self) -> None:
        """No more rows will come."""
        ...


class TensorBoardLogger:
    """Event files in a folder, for `tensorboard --logdir`."""

    def __init__(self, folder: str | Path) -> None:
        self._writer = _import("torch.utils.tensorboard", package="tensorboard").SummaryWriter(str(folder))

    def log(self, row: Row) -> None:
        for name, value in _measures(row).items():
            self._writer.add_scalar(name, value, row.step)

    def close(self) -> None:
        self._writer.close()


class WandbLogger:
    """A run of Weights & Biases. Whether it sends anything is wandb's own setting (WANDB_MODE)."""

    def __init__(self, project: str, *, name: str | None = None, config: Mapping[str, Any] | None = None) -> None:
        settings = dict(config) if config is not None else None
        self._run = _import("wandb", package="wandb").init(project=project, name=name, config=settings)

    def log(self, row: Row) -> None:
        self._run.log(_measures(row), step=row.step)

    def close(self) -> None:
        self._run.finish()


def _measures(row: Row) -> dict[str, float]:
    """All that was measured, but for the step, which is the axis."""
    return {name: value for name, value in row.to_json().items() if name != "step" and value is not None}


def _import(module: str, *, package: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(f"this logger needs the package {package}: pip install {package}") from error
