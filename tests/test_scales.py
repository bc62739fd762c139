"""At the start every class capsule sits where the loss has a gradient: measured, for every method and many sizes."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from capsroute.capsules.scales import largest_rms
from capsroute.model import CapsuleNetwork, NetworkConfig
from capsroute.presets import PRESETS
from capsroute.routing import ROUTINGS
from capsroute.training.losses import make_loss


def config(**changes: Any) -> NetworkConfig:
    small = {"vocabulary": 500, "classes": 4, "word_dim": 64, "max_length": 60}
    return NetworkConfig(**{**small, **changes})


def activation(settings: NetworkConfig, length: int = 60, texts: int = 16) -> torch.Tensor:
    torch.manual_seed(0)
    network = CapsuleNetwork(settings)
    with torch.no_grad():
        return network(torch.randint(1, settings.vocabulary, (texts, length))).activation


def assert_alive(lengths: torch.Tensor) -> None:
    """No class capsule at 0 or at 1, where squash is flat; the bulk in between."""
    low, high = lengths.quantile(torch.tensor([0.05, 0.95])).tolist()
    assert 0.1 < lengths.mean() < 0.9, f"mean {lengths.mean():.3f}"
    assert low > 0.01, f"5 % quantile {low:.4f}"
    assert high < 0.99, f"95 % quantile {high:.4f}"


@pytest.mark.parametrize("classes", [2, 4, 13, 50])
@pytest.mark.parametrize("routing", ROUTINGS)
def test_every_routing_starts_alive(routing: str, classes: int) -> None:
    lengths = activation(config(routing=routing, classes=classes))
    if routing == "em" and classes == 50:
        # As many parents as children: a cluster of one vote has no variance and a score of 1, whatever the scale.
        # That is a limit of the method (its docstring says so).
        assert lengths.median() > 0.9
    else:
        assert_alive(lengths)


@pytest.mark.parametrize(
    "options",
    [
        {"normalisation": "renormalised"},
        {"normalisation": "renormalised", "distance": "cosine"},
        {"normalisation": "identity"},
        {"distance": "cosine"},
        {"graph_passes": "each"},
        {"graph_passes": "each", "normalisation": "renormalised"},
        {"attention": False},
        {"attention_axis": "parents"},
        {"attention_axis": "both", "attention_scale": "none"},
        {"attention_scale": "none"},
        {"aggregate": "after"},
        {"squash": "half"},
        {"squash": "exponential"},
    ],
    ids=str,
)
def test_every_graph_starts_alive(options: dict[str, Any]) -> None:
    assert_alive(activation(config(routing_options=options)))


@pytest.mark.parametrize("length", [15, 60, 150])
@pytest.mark.parametrize("compression", ["positional", "attended", "pooled"])
def test_every_compression_starts_alive(compression: str, length: int) -> None:
    lengths = activation(config(compression=compression), length)
    assert 0.05 < lengths.mean() < 0.95


@pytest.mark.parametrize("positions", [1, 2, 7, 60, 400, 20_000])
def test_the_largest_of_many_features_is_as_long_as_derived(positions: int) -> None:
    """Against SciPy's quadrature of the same integral, and against features that are drawn."""
    area, _ = quad(lambda x: 2 * x * (1 - norm.cdf(x) ** positions), 0, 12, limit=200)
    ours = largest_rms(torch.tensor([positions])).item()
    assert ours == pytest.approx(np.sqrt(2 * area), rel=3e-3)
    features = torch.randn(max(1, 4_000_000 // positions), positions).relu().div(0.5**0.5)
    assert ours == pytest.approx(features.amax(dim=1).square().mean().sqrt().item(), rel=0.05)


@pytest.mark.parametrize("length", [4, 10, 60, 400])
@pytest.mark.parametrize(("columns", "stride"), [(((3,),), 2), (((1, 2, 3),), 1), (((2, 3, 4),), 1)])
def test_pooled_children_start_as_long_as_planned(columns: Any, stride: int, length: int) -> None:
    """Planned is 1, for 60 words. The maximum of a long text is longer, and saturated squash and agreements."""
    torch.manual_seed(0)
    network = CapsuleNetwork(config(compression="pooled", columns=columns, stride=stride))
    with torch.no_grad():
        children = network(torch.randint(1, 500, (16, length))).columns[0].children.values
    assert children.square().sum(dim=2).mean().sqrt().item() == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("children", [5, 50, 150])
@pytest.mark.parametrize("dim", [8, 64])
def test_every_size_starts_alive(children: int, dim: int) -> None:
    assert_alive(activation(config(children=children, dim=dim)))


@pytest.mark.parametrize("squash", ["sabour", "half", "exponential"])
def test_every_squash_of_the_primary_capsules_starts_alive(squash: str) -> None:
    assert_alive(activation(config(squash=squash)))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_starts_alive(preset: str) -> None:
    assert_alive(activation(PRESETS[preset](vocabulary=500, classes=4, max_length=60)))


@pytest.mark.parametrize("dim", [8, 64])
def test_em_starts_undecided(dim: int) -> None:
    """Its cost starts at zero, for beta_use starts at what the first votes cost: every score is about a half."""
    lengths = activation(config(routing="em", iterations=1, dim=dim))
    assert lengths.mean().item() == pytest.approx(0.5, abs=0.07)


def test_thousands_of_classes_start_alive() -> None:
    """Each gets a thousandth of every child, so its capsule is short, but not so short that it stays there."""
    lengths = activation(config(classes=1000, votes="low_rank", vote_rank=16, dim=16, routing="dynamic"), texts=4)
    assert lengths.median() > 0.005


@pytest.mark.parametrize("loss", ["margin", "spread", "cross_entropy", "focal", "binary_cross_entropy"])
@pytest.mark.parametrize("routing", ROUTINGS)
def test_the_gradient_reaches_the_words(routing: str, loss: str) -> None:
    """METHODS measured |v| = 0.001 without scales: a gradient that lr 5e-5 cannot leave."""
    torch.manual_seed(0)
    network = CapsuleNetwork(config(routing=routing, classes=5))
    ids = torch.randint(1, 500, (8, 60))
    output = network(ids)
    make_loss(loss)(output.activation, torch.arange(8) % 5).backward()
    gradient = network.encoder.words.weight.grad
    assert gradient is not None
    assert gradient.norm() > 1e-4


def test_the_unscaled_reading_starts_dead() -> None:
    """What METHODS.md row 11 measured: attention that sums to 1, over votes of Xavier's size."""
    torch.manual_seed(0)
    network = CapsuleNetwork(config(routing_options={"attention_scale": "none"}))
    column = network.columns[0]
    with torch.no_grad():
        column.vote.weight.mul_(1 / 8 / column.vote.weight.std())  # votes as long as their children
        lengths = network(torch.randint(1, 500, (16, 60))).activation
    assert lengths.mean() < 0.005


def test_one_seed_draws_the_same_network_whatever_the_routing() -> None:
    """Methods are compared from the same start: the same words, primaries and votes, up to the derived scale."""
    drawn = {}
    for routing in ROUTINGS:
        torch.manual_seed(5)
        network = CapsuleNetwork(config(routing=routing, columns=((3,), (4,))))
        vote = network.columns[1].vote
        drawn[routing] = (
            network.encoder.words.weight,
            network.columns[1].primary.weight,
            None if vote is None else vote.weight / vote.weight.norm(),
        )
    words, primary, votes = drawn["graph"]
    for routing, (others_words, others_primary, others_votes) in drawn.items():
        assert torch.equal(words, others_words), routing
        assert torch.equal(primary, others_primary), routing
        assert others_votes is None or torch.allclose(votes, others_votes), routing
