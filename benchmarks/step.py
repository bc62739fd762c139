"""A training step at the paper's sizes: 32 texts, 20,000 words of 300 numbers, 50 children of 64, 4 classes.

Forward, loss, backward and the movement of all weights. The plain reading is in textbook.py, moved by torch's Adam.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import textbook
from benchmarks.measure import interleaved, machine_limits, peak_mib
from capsroute.encoders.windows import window_count
from capsroute.plan import make_plan
from capsroute.training.losses import make_loss
from capsroute.training.optimizers import Optimizer, sparse_gradients

LENGTHS = (50, 100, 200, 400)
BATCH, CLASSES, WORDS = 32, 4, 20_000


def run(*, smoke: bool = False) -> list[dict[str, Any]]:
    """The step at length 100 against the plain one, and how it grows with the length."""
    lengths, rounds = ((10, 20), 1) if smoke else (LENGTHS, 9)
    own = {(name, length): own_case(name, length=length) for length in lengths for name in ("graph", "dynamic")}
    plain = {("plain graph", length): plain_case(length) for length in lengths[:3]}
    cases: dict[Any, Callable[[], None]] = {**own, **plain}
    limits = machine_limits(smoke=smoke)
    seconds = interleaved(cases, rounds=rounds)
    rows: list[dict[str, Any]] = []
    for name, length in cases:
        here = seconds[name, length]
        rows.append(
            {
                "question": "step",
                "case": name,
                "length": length,
                "ms": 1e3 * here,
                "faster than plain": seconds["plain graph", length] / here if length in lengths[:3] else None,
                "of dynamic": here / seconds["dynamic", length],
                "of matrix product": operations(length, name) / here / 1e9 / limits["product_gflops"],
                "peak MiB": peak_mib(cases[name, length]),
            }
        )
    return rows


def operations(length: int, routing: str) -> float:
    """Floating-point operations that the step needs: each product once forward and twice backward."""
    positions = window_count(length, 3, 2)
    below = positions * (3 * 300 * 64 + 64 * 4096 + 4096 * 50)
    votes = 50 * CLASSES * 64 * 64
    routed = votes if routing == "dynamic" else 3 * votes + 50 * 50 * 64  # twice, and the attention
    return 2 * 3 * BATCH * (below + routed)


def own_case(routing: str, *, length: int, vocabulary: int = WORDS, words_used: int = WORDS) -> Callable[[], None]:
    """capsroute's step."""
    plan = make_plan("paper", routing=routing)
    torch.manual_seed(0)
    network = plan.build(vocabulary=vocabulary, classes=CLASSES, max_length=length)
    loss = make_loss("margin")
    optimizer = Optimizer(network, weight_decay=0.0, clip=1.0)
    ids, targets = torch.randint(1, words_used, (BATCH, length)), torch.randint(0, CLASSES, (BATCH,))
    return partial(train_on, network, loss, optimizer, ids, targets)


def train_on(network: nn.Module, loss: nn.Module, optimizer: Optimizer, ids: Tensor, targets: Tensor) -> None:
    """One step as training makes it."""
    with sparse_gradients(network):
        optimizer.zero_grad()
        loss(network(ids).activation, targets).backward()
        optimizer.step(1e-3, norm=float(optimizer.gradient_norm()))


def plain_case(length: int) -> Callable[[], None]:
    """The plain step."""
    torch.manual_seed(0)
    network = textbook.Network(vocabulary=WORDS, classes=CLASSES, length=length)
    optimizer = torch.optim.Adam(network.parameters())
    ids, targets = torch.randint(1, WORDS, (BATCH, length)), torch.randint(0, CLASSES, (BATCH,))

    def case() -> None:
        optimizer.zero_grad()
        textbook.margin(network(ids), targets).backward()
        optimizer.step()

    return case
