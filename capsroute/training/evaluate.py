"""A network on texts it does not learn from: scores in the order of the input, loss and measures."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from capsroute.training.bad_batch import BatchError, refusal_of
from capsroute.training.config import Monitor
from capsroute.training.data import BatchSource, NetworkOutput, TextBatch, decide
from capsroute.training.losses import Loss
from capsroute.training.metrics import accuracy, macro_f1, micro_f1


def predict(network: nn.Module, batches: BatchSource, *, bfloat16: bool = False) -> Float[np.ndarray, "text class"]:
    """The scores of all texts, in the order of their rows, whatever the order of the batches.

    Args:
        bfloat16: run the network under bfloat16 autocast.
    """
    scores: list[Tensor] = []
    rows: list[Shaped[np.ndarray, " text"]] = []
    with evaluating(network):
        for batch in batches.epoch(1):
            scores.append(forward(network, batch, bfloat16=bfloat16)[0].cpu())
            rows.append(batch.rows)
    if not rows:
        raise ValueError("there are no texts to predict.")
    order = np.argsort(np.concatenate(rows), kind="stable")
    return torch.cat(scores).numpy()[order]


@dataclass(frozen=True)
class Measures:
    """How a network does on texts; with several labels a text, those with a score of 0.5 and more are its labels."""

    loss: float
    accuracy: float
    micro_f1: float
    macro_f1: float

    def value(self, monitor: Monitor) -> float:
        """The one to watch, turned so that higher is better."""
        return -self.loss if monitor == "loss" else getattr(self, monitor)


def evaluate(network: nn.Module, batches: Iterable[TextBatch], *, loss: Loss, bfloat16: bool = False) -> Measures:
    """Loss and measures on the texts of some batches."""
    total = 0.0
    predicted: list[Tensor] = []
    targets: list[Tensor] = []
    classes = 0
    with evaluating(network):
        for batch in batches:
            with refusal_of(batch):
                scores, activation = forward(network, batch, bfloat16=bfloat16)
            wanted = batch.targets.to(scores.device)
            of_batch = float(loss(activation, wanted))
            if not isfinite(of_batch):
                raise BatchError(f"the validation loss is {of_batch}", batch)
            total += of_batch * len(wanted)
            predicted.append(decide(scores, wanted).cpu())
            targets.append(batch.targets.cpu())
            classes = scores.shape[1]
    if not targets:
        raise ValueError("there are no texts to evaluate on.")
    wanted, given = torch.cat(targets).numpy(), torch.cat(predicted).numpy()
    return Measures(
        loss=total / len(wanted),
        accuracy=accuracy(wanted, given),
        micro_f1=micro_f1(wanted, given),
        macro_f1=macro_f1(wanted, given, classes=classes),
    )


def forward(network: nn.Module, batch: TextBatch, *, bfloat16: bool) -> tuple[Tensor, Tensor]:
    """Scores and activation of a batch, computed where the network is and in the precision asked for."""
    device = device_of(network)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
        output: NetworkOutput = network(batch.ids.to(device))
    if bfloat16:
        return output.scores.float(), output.activation.float()
    return output.scores, output.activation


def device_of(network: nn.Module) -> torch.device:
    """Where the network's weights are."""
    return next(network.parameters()).device


@contextmanager
def evaluating(network: nn.Module) -> Generator[None, None, None]:
    """Without dropout and without gradients; afterwards the network is in the mode in which it was."""
    training = network.training
    network.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        network.train(training)
