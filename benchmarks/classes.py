"""Does a step cost more than in proportion with more classes? Low-rank votes, the sizes of the default preset."""

from functools import partial
from typing import Any

import torch

from benchmarks.measure import interleaved, peak_mib
from benchmarks.step import train_on
from capsroute.plan import make_plan
from capsroute.training.losses import make_loss
from capsroute.training.optimizers import Optimizer

CLASSES = (4, 40, 400, 4000)


def run(*, smoke: bool = False) -> list[dict[str, Any]]:
    """Time and memory of a step of dynamic and graph routing."""
    numbers = CLASSES[:2] if smoke else CLASSES
    rows: list[dict[str, Any]] = []
    for routing in ("dynamic", "graph"):
        cases = {classes: _case(routing, classes) for classes in numbers}
        seconds = interleaved(cases, rounds=1 if smoke else 5)
        rows += [
            {
                "question": "classes",
                "case": f"{routing}, {classes} classes",
                "routing": routing,
                "classes": classes,
                "ms": 1e3 * seconds[classes],
                "ms a class": 1e3 * seconds[classes] / classes,
                "peak MiB": peak_mib(cases[classes]),
            }
            for classes in numbers
        ]
    return rows


def _case(routing: str, classes: int) -> Any:
    plan = make_plan("default", routing=routing, settings={"votes": "low_rank", "vote_rank": 8})
    torch.manual_seed(0)
    network = plan.build(vocabulary=20_000, classes=classes, max_length=50)
    loss, optimizer = make_loss("cross_entropy", scale=10.0), Optimizer(network, weight_decay=0.0, clip=1.0)
    ids, targets = torch.randint(1, 20_000, (32, 50)), torch.randint(0, classes, (32,))
    return partial(train_on, network, loss, optimizer, ids, targets)
