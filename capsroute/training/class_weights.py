"""Losses that count each text by how rare its class is."""

import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.training.data import BatchSource
from capsroute.training.losses import Activation, Loss, Targets


class WeightedLoss(Loss):
    """A loss whose texts are weighted: that of the class, for several labels the mean of theirs, 1 without any.

    The batch's mean is over texts, not over weights, so a batch of frequent classes pulls less than one of rare ones.
    """

    of_classes: Tensor

    def __init__(self, loss: Loss, of_classes: Float[Tensor, " class"]) -> None:
        super().__init__()
        self.several_labels = loss.several_labels
        self.loss = loss
        self.register_buffer("of_classes", of_classes, persistent=False)

    def of(self, activation: Activation, targets: Targets) -> Float[Tensor, " batch"]:
        return self._weights(targets) * self.loss.of(activation, targets)

    def end_epoch(self) -> None:
        self.loss.end_epoch()

    def _weights(self, targets: Targets) -> Float[Tensor, " batch"]:
        if targets.ndim == 1:
            return self.of_classes[targets]
        labels = targets.sum(dim=1)
        mean = targets.to(self.of_classes.dtype) @ self.of_classes / labels.clamp_min(1)
        return torch.where(labels > 0, mean, 1.0)


def balanced(batches: BatchSource, classes: int) -> Float[Tensor, " class"]:
    """texts / (classes that occur * texts of the class), from one pass over the targets: their mean over texts is 1.

    Of several labels a text it counts the labels. A class that does not occur has the weight 1.
    """
    counts = torch.zeros(classes, dtype=torch.float64)
    for batch in batches.epoch(1):
        targets = batch.targets.cpu()
        found = targets.sum(dim=0) if targets.ndim == 2 else torch.bincount(targets, minlength=classes)
        if len(found) > classes:
            raise ValueError(f"targets name {len(found)} classes, but the network has {classes}.")
        counts[: len(found)] += found
    occur = counts > 0
    return torch.where(occur, counts.sum() / (occur.sum() * counts.clamp_min(1)), 1.0).float()
