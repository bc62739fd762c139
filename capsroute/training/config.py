"""Every setting of a training run, checked when it is made.

>>> TrainingConfig(epochs=5).learning_rate
0.001
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin

import torch

from capsroute.checks import above, at_least, one_of, unknown
from capsroute.training.losses import make_loss

Decay = Literal["linear", "constant"]
Monitor = Literal["accuracy", "micro_f1", "macro_f1", "loss"]
ClassWeights = Literal["none", "balanced"]
Precision = Literal["auto", "float32", "bfloat16"]

WITHOUT_EFFECT = ("checkpoint_seconds", "checkpoint_steps")
"""Settings that change nothing about the weights that come out, so that a resumed run may have others."""


@dataclass(frozen=True)
class TrainingConfig:
    """How to train. The defaults are for random words on a few thousand to a few hundred thousand texts.

    Args:
        epochs: passes over the texts at most; early stopping may end before.
        batch_size: texts a step. Whoever makes the batches reads it; training refuses larger ones.
        learning_rate: of Adam, at its highest.
        warm_up: share of all steps in which the learning rate grows from zero.
        decay: of the learning rate after the warm-up: "linear" to zero at the last step, or "constant".
        weight_decay: decoupled (AdamW), of matrices; never of biases, words and single numbers.
        clip: largest norm of the gradient, all weights together; None: no clipping.
        patience: stop after so many epochs without a better validation measure; None: never. Without a validation
            part there is nothing to watch: all epochs are run and the last weights are kept.
        monitor: the validation measure that says which weights are best.
        loss: name of a loss (losses.LOSSES), and `loss_options` its options.
        class_weights: "balanced" weighs each text by texts / (classes * texts of its class).
        seed: of the weights, the order of the texts and everything random in between.
        device: "auto" is a CUDA GPU where there is one and otherwise the CPU; or a name that torch knows.
        precision: "auto" is bfloat16 autocast on a GPU that has it and otherwise float32.
        checkpoint_seconds: time between two checkpoints; longer where writing takes more than a twentieth of it.
        checkpoint_steps: a checkpoint also after so many steps; None: by time alone.
    """

    epochs: int = 20
    batch_size: int = 32
    learning_rate: float = 1e-3
    warm_up: float = 0.05
    decay: Decay = "linear"
    weight_decay: float = 0.01
    clip: float | None = 1.0
    patience: int | None = 3
    monitor: Monitor = "accuracy"
    loss: str = "margin"
    loss_options: Mapping[str, float | str | bool] = field(default_factory=dict[str, float | str | bool])
    class_weights: ClassWeights = "none"
    seed: int = 0
    device: str = "auto"
    precision: Precision = "auto"
    checkpoint_seconds: float = 30.0
    checkpoint_steps: int | None = None

    def __post_init__(self) -> None:
        for setting in fields(self):
            _check_type(setting.name, getattr(self, setting.name), setting.type)
        at_least("epochs", self.epochs, 1)
        at_least("batch_size", self.batch_size, 1)
        above("learning_rate", self.learning_rate, 0)
        at_least("warm_up", self.warm_up, 0)
        at_least("1 - warm_up", 1 - self.warm_up, 0)
        at_least("weight_decay", self.weight_decay, 0)
        at_least("seed", self.seed, 0)
        if self.seed >= 2**63:
            raise ValueError(f"seed must be less than 2**63, but is {self.seed}.")
        at_least("checkpoint_seconds", self.checkpoint_seconds, 0)
        if self.clip is not None:
            above("clip", self.clip, 0)
        if self.patience is not None:
            at_least("patience", self.patience, 1)
        if self.checkpoint_steps is not None:
            at_least("checkpoint_steps", self.checkpoint_steps, 1)
        make_loss(self.loss, **self.loss_options)  # it checks the options

    @classmethod
    def paper(cls, *, epochs: int = 20, seed: int = 0) -> "TrainingConfig":
        """The paper's: Adam with 5e-5 throughout, batches of 32, margin loss with lambda 0.5.

        It names no number of epochs and no early stopping: the best validation epoch of all is kept.
        """
        return cls(
            epochs=epochs,
            batch_size=32,
            learning_rate=5e-5,
            warm_up=0.0,
            decay="constant",
            weight_decay=0.0,
            clip=None,
            patience=None,
            loss="margin",
            loss_options={"positive": 0.9, "negative": 0.1, "down": 0.5},
            seed=seed,
        )

    def to_json(self) -> dict[str, Any]:
        """The settings as plain values, for json.dumps."""
        return asdict(self) | {"loss_options": dict(self.loss_options)}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> "TrainingConfig":
        """The config that `to_json` wrote; settings that are missing have their defaults."""
        types = {setting.name: setting.type for setting in fields(cls)}
        for name, value in settings.items():
            if name not in types:
                raise unknown("setting", name, types)
            _check_type(name, value, types[name])
        return cls(**settings)

    def differences(self, other: "TrainingConfig") -> list[str]:
        """Names of the settings that differ and matter to the result."""
        mine, others = self.to_json(), other.to_json()
        return [name for name in mine if mine[name] != others[name] and name not in WITHOUT_EFFECT]


def make_device(name: str) -> torch.device:
    """The device of that name, or an error where there is none."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    # torch has no one error for this: an unknown name, a missing driver and a build without CUDA differ.
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"there is no device {name!r} on this machine: use 'auto' or 'cpu'.") from error
    return device


def half_precision(precision: Precision, device: torch.device) -> bool:
    """Whether the network runs under bfloat16 autocast."""
    if precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return precision == "bfloat16"


def _check_type(name: str, value: object, hint: object) -> None:
    """Refuse a value of another type: settings also come from files and command lines."""
    if get_origin(hint) is Literal:
        one_of(name, str(value), get_args(hint))
    elif not _fits(value, hint):
        expected = hint.__name__ if isinstance(hint, type) else str(hint)
        raise ValueError(f"{name} must be of the type {expected}, but is {value!r}.")


def _fits(value: object, hint: object) -> bool:
    if isinstance(hint, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping)
    if isinstance(value, bool):
        return False  # Python counts it as an int, but no setting is one
    return isinstance(value, (int, float) if hint is float else hint)  # pyright: ignore[reportArgumentType]
