"""Settings: what a preset holds, what may be changed of it, and what a wrong name gets."""

import pytest

from capsroute.model import NetworkConfig
from capsroute.networks import NETWORKS, network_from_json, network_to_json
from capsroute.plan import make_plan, setting_names
from capsroute.presets import PRESETS
from capsroute.routing import ROUTINGS


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_what_its_name_says(preset: str) -> None:
    plan = make_plan(preset)
    network = plan.build(vocabulary=30, classes=3, max_length=12)
    assert network.config == PRESETS[preset](vocabulary=30, classes=3, max_length=12)


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_routing_replaces_that_of_the_preset(routing: str) -> None:
    network = make_plan("default", routing=routing).build(vocabulary=30, classes=3, max_length=12)
    assert network.config.routing == routing


def test_settings_find_their_place() -> None:
    plan = make_plan(
        settings={
            "dim": 8,
            "epochs": 3,
            "lowercase": False,
            "max_length": 20,
            "routing.temperature": "learned",
            "loss.scale": 5.0,
        }
    )
    assert plan.architecture["dim"] == 8
    assert plan.architecture["routing_options"] == {"temperature": "learned"}
    assert (plan.training.epochs, plan.training.loss_options["scale"]) == (3, 5.0)
    assert plan.tokens.lowercase is False
    assert plan.max_length == 20


def test_another_loss_comes_without_the_options_of_the_old_one() -> None:
    plan = make_plan(settings={"loss": "margin", "loss.down": 0.25})
    assert (plan.training.loss, dict(plan.training.loss_options)) == ("margin", {"down": 0.25})
    assert dict(make_plan(settings={"loss": "focal"}).training.loss_options) == {}


def test_every_setting_that_is_listed_is_taken() -> None:
    plan = make_plan()
    names = setting_names(plan)
    assert {"dim", "epochs", "min_frequency", "max_length", "routing.distance", "loss.scale"} <= set(names)
    assert not {"vocabulary", "classes", "routing_options", "loss_options"} & set(names)
    same = {"dim": 16, "epochs": 12, "min_frequency": 2, "routing.distance": "wasserstein", "loss.scale": 10.0}
    assert make_plan(settings=same).training == plan.training


def test_wrong_settings_are_refused() -> None:
    cases = {
        "unknown setting 'dims'; did you mean 'dim'?": {"dims": 8},
        "unknown setting 'routing.distanse'; did you mean 'routing.distance'?": {"routing.distanse": "cosine"},
        "unknown setting 'vocabulary'": {"vocabulary": 8},
        "max_length must be at least 1": {"max_length": 0},
        "unknown option of loss 'cross_entropy' 'sale'; did you mean 'scale'?": {"loss.sale": 1.0},
        "learning_rate must be": {"learning_rate": "fast"},
    }
    for sentence, settings in cases.items():
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the sentence is compared below
            make_plan(settings=settings)
        assert sentence in str(error.value)
    with pytest.raises(ValueError, match="routing='graph' belongs to the network 'capsule', but 'textcnn'"):
        make_plan(network="textcnn", routing="graph")


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_survives_json(name: str) -> None:
    network = make_plan(network=name).build(vocabulary=30, classes=3, max_length=12)
    twin = network_from_json(network_to_json(network))
    assert {key: value.shape for key, value in twin.state_dict().items()} == {
        key: value.shape for key, value in network.state_dict().items()
    }


def test_a_config_survives_json() -> None:
    for make in PRESETS.values():
        config = make(vocabulary=30, classes=3)
        assert NetworkConfig.from_json(config.to_json()) == config
