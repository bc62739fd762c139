"""Every routing in every reading: what the contract and the reference are checked on."""

from itertools import product
from typing import Any

from capsroute.capsules.relations import SoftmaxRelation, Wasserstein
from capsroute.routing import ROUTINGS

PLAIN: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in ROUTINGS]

GRAPHS: list[tuple[str, dict[str, Any]]] = [
    ("graph", {"distance": distance, "normalisation": normalisation, "attention": attention})
    for distance, normalisation, attention in product(
        ("wasserstein", "euclidean", "cosine"), ("softmax", "renormalised", "identity"), (True, False)
    )
]

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("dynamic", {"amend": True}),
    ("dynamic", {"squash": "half"}),
    ("dynamic", {"squash": "exponential"}),
    ("leaky", {"amend": True}),
    ("leaky", {"leak": 1.5}),
    ("leaky", {"leak": float("-inf")}),
    ("leaky", {"squash": "half"}),
    ("leaky", {"squash": "exponential"}),
    ("em", {"evidence": "mean"}),
    ("em", {"inverse_temperature": 0.1}),
    ("kde", {"squash": "sabour"}),
    ("kde", {"squash": "exponential"}),
    ("adaptive_kde", {"tolerance": 0.5}),
    ("adaptive_kde", {"squash": "sabour"}),
    ("adaptive_kde", {"squash": "exponential"}),
    ("kmeans", {"similarity": "cosine"}),
    ("gcn", {"distance": "euclidean", "temperature": 0.1}),
    ("kmeans", {"squash": "half"}),
    ("kmeans", {"squash": "exponential"}),
    ("gcn", {"normalisation": "identity"}),
    ("gcn", {"normalisation": "renormalised", "distance": "cosine", "squash": "half"}),
    ("gcn", {"temperature": "learned", "squash": "exponential"}),
    ("transformer", {"heads": 1, "wide": 3}),
    ("transformer", {"squash": "half"}),
    ("transformer", {"squash": "exponential"}),
    *((pool, {"squash": squash}) for pool in ("max", "mean", "sum") for squash in ("half", "exponential")),
    ("graph", {"squash": "half"}),
    ("graph", {"squash": "exponential"}),
    ("graph", {"temperature": 0.05}),
    ("graph", {"temperature": "learned"}),
    ("graph", {"attention_axis": "parents"}),
    ("graph", {"attention_axis": "both"}),
    ("graph", {"attention_axis": "parents", "attention_scale": "none"}),
    ("graph", {"attention_scale": "none"}),
    ("graph", {"aggregate": "after"}),
    ("graph", {"aggregate": "after", "graph_passes": "each"}),
    ("graph", {"aggregate": "after_transformed"}),
    ("graph", {"aggregate": "after_transformed", "graph_passes": "each", "agreement": "aggregated"}),
    ("graph", {"graph_passes": "each"}),
    ("graph", {"agreement": "aggregated"}),
    ("graph", {"distance": Wasserstein(reduction="sum")}),
    ("graph", {"distance": Wasserstein(reading="positions")}),
    ("graph", {"distance": Wasserstein(reading="positions", masses="softmax", reduction="sum")}),
    ("graph", {"distance": Wasserstein(reading="identity", reduction="sum")}),
    ("graph", {"normalisation": SoftmaxRelation(0.5, self_loop=False)}),
    ("graph", {"normalisation": SoftmaxRelation(0.5, halve=True)}),
]

VARIANTS = PLAIN + GRAPHS + OPTIONS


def label(variant: tuple[str, dict[str, Any]]) -> str:
    """A name for the test report."""
    name, options = variant
    return "-".join([name, *(f"{key}={_short(value)}" for key, value in options.items())])


def _short(value: object) -> str:
    return str(value) if isinstance(value, str | float | int) else type(value).__name__
