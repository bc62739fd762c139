"""Losses on class activations: what training pulls at.

    margin                 sum_c T_c max(0, m+ - a_c)^2 + down (1 - T_c) max(0, a_c - m-)^2        m+ 0.9, m- 0.1
    spread                 sum_{c != t} max(0, m - (a_t - a_c))^2         m from 0.2 to 0.9, 0.1 more each epoch
    cross_entropy          -log softmax(scale a)_t
    binary_cross_entropy   -mean_c (T_c log a_c + (1 - T_c) log(1 - a_c))
    focal                  -(1 - p)^gamma log p,  p = softmax(scale a)_t

All are means over the batch. T is 1 for the classes of a text. Targets are class numbers [batch], or for several
labels a text a table [batch, class] of zeros and ones, which margin and binary_cross_entropy read. An activation may
have one column more than there are classes, the orphan's: it is never a target.
Sources: margin Sabour 2017 (down 0.5; 0.25 in the code of Zhao 2018); spread Hinton 2018; focal Lin 2017.

>>> make_loss("margin")(torch.tensor([[0.8, 0.3]]), torch.tensor([0]))
tensor(0.0300)
"""

import inspect
from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from capsroute.capsules.guards import is_a, may_look, number
from capsroute.checks import above, at_least, has_shape, look_up, unknown

Activation = Float[Tensor, "batch parent"]
Targets = Shaped[Tensor, "batch *class"]


class Loss(nn.Module, ABC):
    """(activation, targets) -> one number."""

    several_labels: bool = False
    """Whether targets may be a table of zeros and ones."""

    def forward(self, activation: Tensor, targets: Tensor) -> Tensor:
        is_a("activation", activation, Tensor)
        is_a("targets", targets, Tensor)
        has_shape("activation", activation, batch=None, parent=None)
        if not activation.is_floating_point():
            raise ValueError(f"activation must be floating point, but has the dtype {activation.dtype}.")
        if not len(activation):
            raise ValueError("activation must hold at least one text, but the batch is empty.")
        if targets.ndim == 2:
            self._check_table(activation, targets)
        else:
            _check_numbers(activation, targets)
        # Logarithms of half precision are too coarse: 1 - 1e-7 would be 1.
        return self.of(activation.to(torch.promote_types(activation.dtype, torch.float32)), targets).mean()

    def _check_table(self, activation: Tensor, targets: Tensor) -> None:
        if not self.several_labels:
            raise ValueError(
                f"{type(self).__name__} takes one label a text; for several use 'margin' or 'binary_cross_entropy'."
            )
        has_shape("targets", targets, batch=len(activation), **{"class": None})
        if targets.shape[1] > activation.shape[1]:
            raise ValueError(f"targets name {targets.shape[1]} classes, but activation has {activation.shape[1]}.")
        if may_look(targets) and not ((targets == 0) | (targets == 1)).all():
            raise ValueError("targets with a column for each class must hold zeros and ones, but hold other numbers.")

    @abstractmethod
    def of(self, activation: Activation, targets: Targets) -> Float[Tensor, " batch"]:
        """The loss of each text."""

    def end_epoch(self) -> None:
        """Called by training after each epoch, for a loss that has a schedule."""


class MarginLoss(Loss):
    """Class capsules of the text longer than `positive`, all others shorter than `negative`.

    Args:
        down: weight of the classes that are not the text's (lambda).
    """

    several_labels = True

    def __init__(self, *, positive: float = 0.9, negative: float = 0.1, down: float = 0.5) -> None:
        super().__init__()
        number("down", down)
        at_least("down", down, 0)
        number("positive", positive)
        number("negative", negative)
        above("positive", positive, negative)
        self.positive = positive
        self.negative = negative
        self.down = down

    def of(self, activation: Activation, targets: Targets) -> Float[Tensor, " batch"]:
        is_class = _as_table(targets, activation)
        too_short = (self.positive - activation).clamp_min(0).square()
        too_long = (activation - self.negative).clamp_min(0).square()
        return (is_class * too_short + self.down * (1 - is_class) * too_long).sum(dim=1)


class SpreadLoss(Loss):
    """The right class ahead of every other by a margin that grows with the epochs."""

    margin: Tensor

    def __init__(self, *, start: float = 0.2, step: float = 0.1, stop: float = 0.9) -> None:
        super().__init__()
        number("start", start)
        above("start", start, 0)
        number("step", step)
        at_least("step", step, 0)
        number("stop", stop)
        at_least("stop", stop, start)
        self.step = step
        self.stop = stop
        self.register_buffer("margin", torch.tensor(start))  # saved with the state: a resumed run goes on from it

    def of(self, activation: Activation, targets: Targets) -> Float[Tensor, " batch"]:
        right = activation.gather(1, targets[:, None])
        short = (self.margin - (right - activation)).clamp_min(0).square()
        return (short * (1 - _as_table(targets, activation))).sum(dim=1)

    def end_epoch(self) -> None:
        self.margin.add_(self.step).clamp_(max=self.stop)


class CrossEntropyLoss(Loss):
    """Cross-entropy of the scaled activations.

    Args:
        scale: lengths lie in [0, 1], so without a scale the loss cannot fall below ln(1 + (classes - 1) / e).
        smoothing: share of the target that is spread over all classes.
    """

    def __init__(self, *, scale: float = 10.0, smoothing: float = 0.0) -> None:
        super().__init__()
        number("scale", scale)
        above("scale", scale, 0)
        number("smoothing", smoothing)
        at_least("smoothing", smoothing, 0)
        above("1 - smoothing", 1 - smoothing, 0)
        self.scale = scale
        self.smoothing = smoothing

    def of(self, activation: Activation, targets: Targets) -> Float[Tensor, " batch"]:
        logits = self.scale * activation
        return F.cross_entropy(logits, targets, reduction="none", label_smoothing=self.smoothing)


class BinaryCrossEntropyLoss(Loss):
    """Every class for itself: its length is the probability that the text has it."""

    several_labels = True

    def of(self, activation: Activation, targets: Targets) -> Float[Tensor, " batch"]:
        certain = 1e-7  # a length of exactly 0 or 1 would have an infinite loss
        probability = activation.clamp(certain, 1 - certain)
        has = _as_table(targets, activation)
        # Written out: PyTorch's own stops at NaN, which training reports itself, and refuses autocast.
        return -(has * probability.log() + (1 - has) * (1 - probability).log()).mean(dim=1)


class FocalLoss(Loss):
    """Cross-entropy that looks away from the texts it already has right.

    Args:
        gamma: how far away; 0 is cross-entropy.
        scale: of the activations, as in cross-entropy.
    """

    def __init__(self, *, gamma: float = 2.0, scale: float = 10.0) -> None:
        super().__init__()
        number("gamma", gamma)
        at_least("gamma", gamma, 0)
        number("scale", scale)
        above("scale", scale, 0)
        self.gamma = gamma
        self.scale = scale

    def of(self, activation: Activation, targets: Targets) -> Float[Tensor, " batch"]:
        log_p = -F.cross_entropy(self.scale * activation, targets, reduction="none")
        return -((1 - log_p.exp()) ** self.gamma) * log_p


LOSSES: dict[str, type[Loss]] = {
    "margin": MarginLoss,
    "spread": SpreadLoss,
    "cross_entropy": CrossEntropyLoss,
    "binary_cross_entropy": BinaryCrossEntropyLoss,
    "focal": FocalLoss,
}


def make_loss(name_or_instance: str | Loss, **options: Any) -> Loss:
    """A loss by name; an instance is returned as it is."""
    if isinstance(name_or_instance, Loss):
        if options:
            raise ValueError(f"options ({', '.join(options)}) go to a loss's name; an instance has its own.")
        return name_or_instance
    loss = look_up("loss", name_or_instance, LOSSES)
    valid = list(inspect.signature(loss).parameters)
    for option in options:
        if option not in valid:
            raise unknown(f"option of loss '{name_or_instance}'", option, valid)
    return loss(**options)


def _check_numbers(activation: Tensor, targets: Tensor) -> None:
    has_shape("targets", targets, batch=len(activation))
    if targets.dtype != torch.int64:
        raise ValueError(f"targets must be int64 class numbers, but have the dtype {targets.dtype}.")
    if may_look(targets) and (targets.min() < 0 or targets.max() >= activation.shape[1]):
        raise ValueError(
            f"targets must lie between 0 and {activation.shape[1] - 1}, as activation has {activation.shape[1]} "
            f"classes, but lie between {int(targets.min())} and {int(targets.max())}."
        )


def _as_table(targets: Targets, activation: Activation) -> Float[Tensor, "batch parent"]:
    """Zeros and ones, with a column of zeros for an orphan."""
    if targets.ndim == 1:
        return F.one_hot(targets, activation.shape[1]).to(activation.dtype)
    return F.pad(targets.to(activation.dtype), (0, activation.shape[1] - targets.shape[1]))
