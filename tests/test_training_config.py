"""Settings are checked when they are given, and come back from JSON as they went."""

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch

from capsroute.training import TrainingConfig
from capsroute.training.config import half_precision, make_device


def test_json_there_and_back() -> None:
    config = TrainingConfig(
        epochs=3, loss="focal", loss_options={"gamma": 1.5}, patience=None, clip=None, decay="constant"
    )
    assert TrainingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_missing_settings_have_their_defaults() -> None:
    assert TrainingConfig.from_json({"epochs": 3}) == TrainingConfig(epochs=3)


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown setting 'learning_rat'; did you mean 'learning_rate'\?"):
        TrainingConfig.from_json({"learning_rat": 0.1})


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("epochs", 0, "epochs must be at least 1, but is 0"),
        ("epochs", "20", "epochs must be of the type int, but is '20'"),
        ("epochs", True, "epochs must be of the type int, but is True"),
        ("batch_size", 2.5, "batch_size must be of the type int"),
        ("learning_rate", 0, "learning_rate must be greater than 0"),
        ("learning_rate", float("nan"), "learning_rate must be greater than 0"),
        ("warm_up", 1.1, "1 - warm_up must be at least 0"),
        ("decay", "linaer", "unknown decay 'linaer'; did you mean 'linear'?"),
        ("weight_decay", -1.0, "weight_decay must be at least 0"),
        ("clip", 0.0, "clip must be greater than 0"),
        ("clip", "none", "clip must be of the type float | None"),
        ("patience", 0, "patience must be at least 1"),
        ("monitor", "acc", "unknown monitor 'acc'"),
        ("loss", "hinge", "unknown loss 'hinge'"),
        ("loss_options", {"lambda": 0.5}, "unknown option of loss 'margin' 'lambda'"),
        ("class_weights", "equal", "unknown class_weights 'equal'"),
        ("precision", "half", "unknown precision 'half'"),
        ("seed", -1, "seed must be at least 0"),
        ("seed", 2**63, "seed must be less than 2**63"),
        ("checkpoint_seconds", -1, "checkpoint_seconds must be at least 0"),
        ("checkpoint_steps", 0, "checkpoint_steps must be at least 1"),
    ],
)
def test_bad_settings_are_refused(setting: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        TrainingConfig.from_json({setting: value})
    assert message in str(caught.value)


def test_the_papers_settings() -> None:
    config = TrainingConfig.paper()
    assert (config.learning_rate, config.batch_size) == (5e-5, 32)
    assert (config.decay, config.warm_up, config.weight_decay, config.clip) == ("constant", 0, 0, None)
    assert (config.loss, config.loss_options["down"]) == ("margin", 0.5)


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        TrainingConfig().epochs = 3  # type: ignore[misc]


def test_only_settings_that_matter_to_the_weights_make_a_difference() -> None:
    before = TrainingConfig(seed=1, clip=None, checkpoint_seconds=1.0)
    assert before.differences(TrainingConfig(seed=2, clip=None, checkpoint_steps=3)) == ["seed"]


def test_devices() -> None:
    assert make_device("cpu") == torch.device("cpu")
    assert make_device("auto").type in ("cpu", "cuda")
    with pytest.raises(ValueError, match="there is no device 'gpu' on this machine: use 'auto' or 'cpu'"):
        make_device("gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has such a device")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="there is no device 'cuda'"):
        make_device("cuda")


def test_precision() -> None:
    cpu = torch.device("cpu")
    assert [half_precision(name, cpu) for name in ("auto", "float32", "bfloat16")] == [False, False, True]
