"""A routing layer with its votes, forward and backward: 32 texts, 50 children, 4 parents, 64 dimensions, 3 passes."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import textbook
from benchmarks.measure import interleaved, peak_mib
from capsroute.capsules.votes import make_votes
from capsroute.routing import make_routing

SIZES = {"children": 50, "parents": 4, "dim": 64}
METHODS = [*textbook.LAYERS, "graph"]


def run(*, smoke: bool = False) -> list[dict[str, Any]]:
    """Every method against its textbook version, and all against the textbook's dynamic routing."""
    batch = 2 if smoke else 32
    sizes = {**SIZES, "children": 6, "dim": 4} if smoke else SIZES
    torch.manual_seed(0)
    cases = {f"textbook {name}": textbook_case(name, batch, **sizes) for name in METHODS}
    cases |= {name: own_case(name, batch, **sizes) for name in METHODS}
    seconds = interleaved(cases, rounds=2 if smoke else 31)
    base = seconds["textbook dynamic"]
    return [
        {
            "question": "routing",
            "case": name,
            "ms": 1e3 * seconds[name],
            "of textbook": seconds[name] / seconds[f"textbook {name}"],
            "of textbook dynamic": seconds[name] / base,
            "textbook ms": 1e3 * seconds[f"textbook {name}"],
            "peak MiB": peak_mib(cases[name]),
            "textbook peak MiB": peak_mib(cases[f"textbook {name}"]),
        }
        for name in METHODS
    ]


def own_case(name: str, batch: int, *, children: int, parents: int, dim: int) -> Any:
    """capsroute's layer."""
    vote = make_votes("unshared", children=children, parents=parents, dim=dim)
    routing = make_routing(name, children=children, parents=parents, dim=dim)
    layer = nn.ModuleList([vote, routing])
    u = 0.1 * torch.randn(batch, children, dim)

    def case() -> None:
        layer.zero_grad()
        routing(u.clone().requires_grad_(), vote).activation.sum().backward()

    return case


def textbook_case(name: str, batch: int, *, children: int, parents: int, dim: int) -> Any:
    """The same as a textbook has it."""
    weights = [torch.randn(children, parents, dim, dim) / dim**0.5]
    if name == "graph":
        weights += [torch.randn(dim, dim) / dim**0.5, torch.zeros(dim), torch.zeros(dim)]
    u = 0.1 * torch.randn(batch, children, dim)
    for weight in weights:
        weight.requires_grad_()

    def case() -> None:
        for weight in weights:
            weight.grad = None
        scores: Tensor = layer(u.clone().requires_grad_(), weights[0])
        scores.sum().backward()

    layer = partial(textbook.graph, attention=tuple(weights[1:])) if name == "graph" else textbook.LAYERS[name]
    return case
