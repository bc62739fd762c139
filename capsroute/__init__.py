"""capsroute: text classification with capsule networks, every routing method behind one interface."""

from importlib import import_module
from typing import TYPE_CHECKING

from capsroute._version import __version__ as __version__

if TYPE_CHECKING:
    from capsroute.baselines import BagOfNgrams, TextCnn
    from capsroute.capsules.relations import distance_matrix, relation, row_entropy
    from capsroute.capsules.squash import squash
    from capsroute.classifier import CapsuleClassifier
    from capsroute.model import CapsuleNetwork, NetworkConfig
    from capsroute.routing import ROUTINGS, Routed, Routing, make_routing
    from capsroute.routing.contract import check_routing
    from capsroute.training.losses import make_loss

__all__ = [
    "ROUTINGS",
    "BagOfNgrams",
    "CapsuleClassifier",
    "CapsuleNetwork",
    "NetworkConfig",
    "Routed",
    "Routing",
    "TextCnn",
    "check_routing",
    "distance_matrix",
    "make_loss",
    "make_routing",
    "relation",
    "row_entropy",
    "squash",
]

_HOMES = {
    "capsroute.baselines": ("BagOfNgrams", "TextCnn"),
    "capsroute.capsules.relations": ("distance_matrix", "relation", "row_entropy"),
    "capsroute.capsules.squash": ("squash",),
    "capsroute.classifier": ("CapsuleClassifier",),
    "capsroute.model": ("CapsuleNetwork", "NetworkConfig"),
    "capsroute.routing": ("ROUTINGS", "Routed", "Routing", "make_routing"),
    "capsroute.routing.contract": ("check_routing",),
    "capsroute.training.losses": ("make_loss",),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import capsroute` does not wait for torch."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'capsroute' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
