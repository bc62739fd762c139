"""A run on disk, complete enough to go on from as if it had never stopped.

Two files take turns, so that the last good one stays while the next is written:

    checkpoint-0.safetensors, checkpoint-1.safetensors
        network/*  best/*  optimizer/*  loss/*  random/*      tensors
        about: format, number, config, data, state            plain values (position, history, ...)
"""

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from capsroute.training.config import TrainingConfig
from capsroute.training.files import BrokenFileError, load_tensors, read_about, save_tensors
from capsroute.training.history import Row

FORMAT = 1


class CheckpointError(OSError):
    """A checkpoint that cannot be written, read or gone on from."""


@dataclass
class State:
    """Where a run is. The sums are of the epoch that is being run."""

    epoch: int = 1
    batch: int = 0  # batches of the epoch that have been learned from
    texts: int = 0
    loss: float = 0.0
    right: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    best_epoch: int | None = None
    best_value: float | None = None
    history: list[Row] = field(default_factory=list[Row])
    finished: bool = False

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "State":
        """The state that dataclasses.asdict took apart."""
        sums = {name: value for name, value in values.items() if name != "history"}
        return cls(**sums, history=[Row(**row) for row in values["history"]])


@dataclass(frozen=True)
class Checkpoint:
    """What is saved.

    Args:
        tensors: by group (network, best, optimizer, loss, random) and name.
        data: says which texts the run learns from.
    """

    tensors: dict[str, dict[str, Tensor]]
    state: State
    config: TrainingConfig
    data: str


class Checkpoints:
    """The checkpoints of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def paths(self) -> list[Path]:
        """The two files, whether there or not."""
        return [self.folder / f"checkpoint-{slot}.safetensors" for slot in (0, 1)]

    def exist(self) -> bool:
        """Whether there is anything to go on from."""
        return any(path.exists() for path in self.paths)

    def clear(self) -> None:
        """Delete the checkpoints, to start over in the same folder."""
        with writing(self.folder):
            for path in self.paths:
                path.unlink(missing_ok=True)

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint in the place of the older of the two."""
        path = self.paths[self.number % 2]
        tensors = {f"{group}/{name}": t for group, named in checkpoint.tensors.items() for name, t in named.items()}
        about = {
            "format": FORMAT,
            "number": self.number,
            "config": checkpoint.config.to_json(),
            "data": checkpoint.data,
            "state": asdict(checkpoint.state),
        }
        with writing(self.folder):
            save_tensors(path, tensors, about)
        self.number += 1
        return path

    def load(self) -> Checkpoint | None:
        """The newest checkpoint that is whole; None where there is none at all."""
        found: list[tuple[int, Path, dict[str, Any]]] = []
        broken: list[Exception] = []
        for path in filter(Path.exists, self.paths):
            try:
                about = read_about(path)
                found.append((_number(about, path), path, about))
            except (BrokenFileError, OSError) as error:
                broken.append(error)
        for number, path, about in sorted(found, reverse=True, key=lambda entry: entry[0]):
            _check_format(about, path)
            try:
                tensors = _grouped(load_tensors(path))
            except (BrokenFileError, OSError) as error:
                broken.append(error)
                continue
            for error in broken:
                warnings.warn(f"{error} Going on from {path}.", stacklevel=2)
            self.number = number + 1  # the next one takes the place of the other
            state, config = State.from_json(about["state"]), TrainingConfig.from_json(about["config"])
            return Checkpoint(tensors, state, config, about["data"])
        if broken:
            raise CheckpointError(
                f"{broken[0]} No whole checkpoint is left in {self.folder}: start over without resume."
            )
        return None


@contextmanager
def writing(folder: Path) -> Generator[None, None, None]:
    """Say in one sentence what went wrong while something was written to the folder of a run."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CheckpointError(
            f"cannot write to {folder} ({reason}): make room or give another folder; "
            "what was saved there before is untouched, and resume=True goes on from it."
        ) from error


def check_same(checkpoint: Checkpoint, *, config: TrainingConfig, data: str, network: Mapping[str, Tensor]) -> None:
    """Refuse to go on with other settings, other texts or another network."""
    for name in checkpoint.config.differences(config):
        before, now = getattr(checkpoint.config, name), getattr(config, name)
        raise CheckpointError(
            f"the run was started with {name} {before!r}, but is to go on with {now!r}: "
            "give the same settings, or start over in another folder."
        )
    if checkpoint.data != data:
        raise CheckpointError(
            "the run was started on other texts, or on the same in other batches: "
            "give the same data, or start over in another folder."
        )
    saved = checkpoint.tensors["network"]
    for name in sorted(saved.keys() | network.keys()):
        before, now = (list(tensors[name].shape) if name in tensors else None for tensors in (saved, network))
        if before != now:
            raise CheckpointError(
                f"the run was started with a network whose {name} has the shape {before}, but now it has {now}: "
                "build the same network, or start over in another folder."
            )


def _number(about: Mapping[str, Any], path: Path) -> int:
    """How many checkpoints the run had written before."""
    if not isinstance(about.get("number"), int):
        raise BrokenFileError(f"{path} is no checkpoint.")
    return about["number"]


def _check_format(about: Mapping[str, Any], path: Path) -> None:
    if about.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {about.get('format')}, but this version of capsroute reads {FORMAT}: "
            "use the version that wrote it, or start over without resume."
        )


def _grouped(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    groups: dict[str, dict[str, Tensor]] = {"network": {}, "best": {}, "optimizer": {}, "loss": {}, "random": {}}
    for key, tensor in tensors.items():
        group, name = key.split("/", 1)
        groups[group][name] = tensor
    return groups
