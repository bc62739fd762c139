"""Networks by name, and as JSON: what is written into a saved model and read from it.

capsule    CapsuleNetwork, made from a NetworkConfig
textcnn    TextCnn
ngrams     BagOfNgrams
"""

from collections.abc import Mapping
from typing import Any, Literal

from torch import nn

from capsroute.baselines import BagOfNgrams, TextCnn
from capsroute.checks import look_up
from capsroute.model import CapsuleNetwork, NetworkConfig

NetworkName = Literal["capsule", "textcnn", "ngrams"]
Network = CapsuleNetwork | TextCnn | BagOfNgrams
NETWORKS: dict[str, type[nn.Module]] = {"capsule": CapsuleNetwork, "textcnn": TextCnn, "ngrams": BagOfNgrams}


def network_name(network: nn.Module) -> str:
    """The name under which the network's class stands in NETWORKS."""
    for name, cls in NETWORKS.items():
        if type(network) is cls:
            return name
    raise ValueError(f"{type(network).__name__} is none of the networks that can be saved: {', '.join(NETWORKS)}.")


def network_to_json(network: Network) -> dict[str, Any]:
    """Name and sizes, from which `network_from_json` makes an untrained twin."""
    settings = network.config.to_json() if isinstance(network, CapsuleNetwork) else dict(network.settings)
    return {"name": network_name(network), **settings}


def network_from_json(description: Mapping[str, Any]) -> Network:
    """The network described, with fresh weights."""
    settings = dict(description)
    name = str(settings.pop("name", "capsule"))
    look_up("network", name, NETWORKS)
    if name == "textcnn":
        return TextCnn(**settings)
    if name == "ngrams":
        return BagOfNgrams(**settings)
    return CapsuleNetwork(NetworkConfig.from_json(settings))
