"""All settings of a training run, from a preset and what is changed of it.

    network    sizes and choices of the network     (model.NetworkConfig, or the arguments of a baseline)
    training   the loop                             (training.TrainingConfig)
    tokens     the words                            (text.tokens.TokenizerConfig)

They live in one namespace: `settings={"dim": 32, "epochs": 5, "lowercase": False}`. The options of the routing and of
the loss have a prefix: `routing.temperature`, `loss.down`.

>>> plan = make_plan("default", settings={"dim": 32, "epochs": 5, "routing.distance": "cosine"})
>>> plan.architecture["dim"], plan.training.epochs, plan.architecture["routing_options"]["distance"]
(32, 5, 'cosine')
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from capsroute.checks import at_least, look_up, one_of, unknown
from capsroute.model import ConvolutionConfig, NetworkConfig
from capsroute.networks import NETWORKS, Network, NetworkName, network_from_json
from capsroute.presets import PRESETS
from capsroute.routing import ROUTINGS, routing_options
from capsroute.text.tokens import TokenizerConfig
from capsroute.training.config import TrainingConfig
from capsroute.training.losses import LOSSES

PresetName = Literal["default", "paper", "capsule_a", "capsule_b"]
FROM_DATA = ("vocabulary", "classes", "max_length")
"""Sizes that the texts decide, not the user; max_length is a setting of its own."""
_MAX_LENGTH = int | None
_TOKEN_TYPES = get_type_hints(TokenizerConfig)
_KINDS = {int: "a whole number", bool: "true or false", type(None): "null"}


@dataclass(frozen=True)
class Plan:
    """How to make and train a network once the texts are known."""

    network: NetworkName
    architecture: dict[str, Any]
    training: TrainingConfig
    tokens: TokenizerConfig
    max_length: int | None  # None: from the texts

    def build(self, *, vocabulary: int, classes: int, max_length: int) -> Network:
        """The untrained network. Weights are drawn from torch's generator: seed it first."""
        sizes: dict[str, Any] = {"vocabulary": vocabulary, "classes": classes}
        if self.network == "capsule":
            sizes["max_length"] = max_length
        return network_from_json({"name": self.network, **self.architecture, **sizes})

    def try_out(self) -> None:
        """Build the network for a few words and drop it: settings that are wrong show before texts are read."""
        try:
            self.build(vocabulary=9, classes=2, max_length=self.max_length or 100)
        except RuntimeError as error:  # torch has no other error for a size that memory cannot hold
            raise ValueError(f"no such network can be built on this machine: {str(error).splitlines()[0]}") from error


def make_plan(
    preset: str = "default",
    *,
    network: str = "capsule",
    routing: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Plan:
    """The preset with the settings given in place of its own."""
    one_of("preset", preset, get_args(PresetName))
    look_up("network", network, NETWORKS)
    plan = _baseline(network) if network != "capsule" else _capsules(preset, routing)
    if routing is not None and network != "capsule":
        raise ValueError(f"routing={routing!r} belongs to the network 'capsule', but {network!r} was asked for.")
    return _changed(plan, settings or {})


def setting_names(plan: Plan) -> list[str]:
    """Every setting that a plan takes."""
    names = [*_architecture_names(plan), "max_length", *_names(TrainingConfig), *_names(TokenizerConfig)]
    names += [f"loss.{option}" for option in _loss_options(plan.training)]
    if plan.network == "capsule":
        names += [f"routing.{option}" for option in routing_options(plan.architecture["routing"])]
    return list(dict.fromkeys(name for name in names if name not in ("loss_options", "routing_options")))


def _capsules(preset: str, routing: str | None) -> Plan:
    config = look_up("preset", preset, PRESETS)(vocabulary=2, classes=2).to_json()
    architecture = {name: value for name, value in config.items() if name not in FROM_DATA}
    if routing is not None and routing != architecture["routing"]:
        look_up("routing", routing, ROUTINGS)
        architecture |= {"routing": routing, "routing_options": {}}
    training = DEFAULT_TRAINING if preset == "default" else TrainingConfig.paper()
    return Plan("capsule", architecture, training, TokenizerConfig(), None)


def _baseline(network: str) -> Plan:
    signature = inspect.signature(NETWORKS[network])
    architecture = {
        name: parameter.default for name, parameter in signature.parameters.items() if name not in FROM_DATA
    }
    loss = {"loss": "cross_entropy", "loss_options": {"scale": 1.0}}  # their activations are logits
    return Plan(network, architecture, replace(DEFAULT_TRAINING, **loss), TokenizerConfig(), None)  # pyright: ignore


def _changed(plan: Plan, settings: Mapping[str, Any]) -> Plan:
    valid = setting_names(plan)
    architecture = dict(plan.architecture)
    training: dict[str, Any] = {}
    tokens: dict[str, Any] = {}
    max_length = plan.max_length
    # A new loss or routing comes without the options of the old one.
    if settings.get("loss", plan.training.loss) != plan.training.loss:
        training["loss_options"] = {}
    for name, value in settings.items():
        if name.startswith("loss.") and name.count(".") == 1:
            before = training.get("loss_options", plan.training.loss_options)
            training["loss_options"] = {**before, name[5:]: value}
        elif name not in valid:
            raise unknown("setting", name, valid)
        elif name.startswith("routing."):
            architecture["routing_options"] = {**architecture["routing_options"], name[8:]: value}
        elif name == "max_length":
            _check_type(name, value, _MAX_LENGTH)
            if value is not None:
                at_least(name, value, 1)
            max_length = value
        elif name in _architecture_names(plan):
            architecture[name] = _as_setting(name, value)
        elif name in _names(TrainingConfig):
            training[name] = value
        else:
            _check_type(name, value, _TOKEN_TYPES[name])
            tokens[name] = value
    return Plan(
        plan.network,
        architecture,
        TrainingConfig.from_json({**plan.training.to_json(), **training}),
        replace(plan.tokens, **tokens),
        max_length,
    )


def _as_setting(name: str, value: Any) -> Any:
    """Nested values come as plain lists and objects."""
    if name == "convolution" and isinstance(value, ConvolutionConfig):
        return {"width": value.width, "kinds": value.kinds, "iterations": value.iterations}
    return value


def _check_type(name: str, value: Any, hint: Any) -> None:
    """Refuse a setting of the tokens that has another type than the one it is declared with."""
    kinds = get_args(hint) or (hint,)
    named = get_origin(hint) is Literal  # the config itself compares it with the list
    fits = named or (type(value) in kinds if value is not None else type(None) in kinds)
    if not fits:
        wanted = " or ".join(_KINDS[kind] for kind in kinds)
        raise ValueError(f"{name} must be {wanted}, but is {value!r}.")


def _architecture_names(plan: Plan) -> list[str]:
    if plan.network == "capsule":
        return [name for name in _names(NetworkConfig) if name not in (*FROM_DATA, "routing_options")]
    return list(plan.architecture)


def _names(config: type) -> list[str]:
    return [setting.name for setting in fields(config)]


def _loss_options(training: TrainingConfig) -> list[str]:
    return list(inspect.signature(LOSSES[training.loss]).parameters)


DEFAULT_TRAINING = TrainingConfig(epochs=12, loss="cross_entropy", loss_options={"scale": 10.0})
"""Cross-entropy of lengths: with many labels the margin loss, which wants every wrong capsule short, makes all of
them short before any has learned its words (results/LOG.md)."""
