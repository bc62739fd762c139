"""Every routing by its name, and how to make one.

>>> make_routing("graph", children=50, parents=4, dim=64, distance="cosine").iterations
3
"""

import inspect
from typing import Any

from capsroute.checks import look_up, unknown
from capsroute.routing.adaptive_kde import AdaptiveKdeRouting
from capsroute.routing.attention import VoteAttention
from capsroute.routing.base import Routed, Routing, agreement, weighted_sum
from capsroute.routing.dynamic import DynamicRouting
from capsroute.routing.em import EmRouting
from capsroute.routing.gcn import GcnRouting
from capsroute.routing.graph import GraphRouting
from capsroute.routing.kde import KdeRouting
from capsroute.routing.kmeans import KmeansRouting
from capsroute.routing.leaky import LeakyRouting
from capsroute.routing.pooling import MaxPooling, MeanPooling, SumPooling
from capsroute.routing.transformer import TransformerRouting

ROUTINGS: dict[str, type[Routing]] = {
    "graph": GraphRouting,
    "dynamic": DynamicRouting,
    "leaky": LeakyRouting,
    "em": EmRouting,
    "kde": KdeRouting,
    "adaptive_kde": AdaptiveKdeRouting,
    "kmeans": KmeansRouting,
    "gcn": GcnRouting,
    "transformer": TransformerRouting,
    "max": MaxPooling,
    "mean": MeanPooling,
    "sum": SumPooling,
}
"""Names -> classes. A method from elsewhere is added with `ROUTINGS["name"] = MyRouting`."""

_SHARED = ("children", "parents", "dim", "iterations")


def routing_options(name: str) -> list[str]:
    """The options of a method beside the four that all have."""
    signature = inspect.signature(look_up("routing", name, ROUTINGS))
    return [option for option in signature.parameters if option not in _SHARED]


def make_routing(
    name_or_instance: str | Routing,
    *,
    children: int | None,
    parents: int,
    dim: int,
    iterations: int | None = None,
    **options: Any,
) -> Routing:
    """A routing by name; an instance is returned as it is, once its sizes have been compared.

    Args:
        children: how many there are; None: any number.
        iterations: passes; None: the method's own number, 3 but for adaptive_kde, where it is a bound (10).
        options: the method's own; `routing_options(name)` lists them.
    """
    if isinstance(name_or_instance, Routing):
        return _as_given(name_or_instance, children, parents, dim, iterations, options)
    routing = look_up("routing", name_or_instance, ROUTINGS)
    valid = routing_options(name_or_instance)
    for option in options:
        if option not in valid:
            raise unknown(f"option of routing '{name_or_instance}'", option, valid)
    passes = routing.default_iterations if iterations is None else iterations
    return routing(children=children, parents=parents, dim=dim, iterations=passes, **options)


def _as_given(
    routing: Routing,
    children: int | None,
    parents: int,
    dim: int,
    iterations: int | None,
    options: dict[str, Any],
) -> Routing:
    """An instance has its sizes and options already: what is asked for must not contradict them."""
    sizes = {
        "children": (children, routing.n_children),
        "parents": (parents, routing.n_parents),
        "dim": (dim, routing.dim),
        "iterations": (iterations, routing.iterations),
    }
    for name, (size, has) in sizes.items():
        if size is not None and has is not None and size != has:
            raise ValueError(f"{name}={size} was asked for, but the {type(routing).__name__} given has {has}.")
    if options:
        raise ValueError(f"options ({', '.join(options)}) go to a routing's name; an instance has its own.")
    return routing


__all__ = [
    "ROUTINGS",
    "Routed",
    "Routing",
    "VoteAttention",
    "agreement",
    "make_routing",
    "routing_options",
    "weighted_sum",
]
