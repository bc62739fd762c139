"""Votes against the reference; their initial scale; what bad settings get."""

import numpy as np
import pytest
import torch

from capsroute.capsules.votes import make_votes
from tests import reference as ref


def stirred(kind: str, **sizes: int | None) -> torch.nn.Module:
    vote = make_votes(kind, **sizes).double()
    with torch.no_grad():
        vote.bias.normal_()
    return vote


@pytest.mark.parametrize("kind", ["unshared", "shared", "low_rank"])
def test_equals_the_reference(kind: str) -> None:
    vote = stirred(kind, children=5, parents=3, dim=4, rank=2 if kind == "low_rank" else None)
    u = torch.randn(2, 5, 4, dtype=torch.float64)
    weights = {name: value.detach().numpy() for name, value in vote.named_parameters()}
    for document, votes in zip(u.numpy(), vote(u).detach().numpy(), strict=True):
        match kind:
            case "unshared":
                expected = ref.unshared_votes(document, weights["weight"], weights["bias"])
            case "shared":
                expected = ref.shared_votes(document, weights["weight"], weights["bias"])
            case _:
                expected = ref.low_rank_votes(document, weights["down"], weights["up"], weights["bias"])
        np.testing.assert_allclose(votes, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "rank", "parameters"),
    [("unshared", None, 50 * 4 * 64 * 65), ("shared", None, 4 * 64 * 65), ("low_rank", 8, 50 * 8 * 64 + 4 * 64 * 9)],
)
def test_parameters_are_as_documented(kind: str, rank: int | None, parameters: int) -> None:
    vote = make_votes(kind, children=50, parents=4, dim=64, rank=rank)
    assert sum(parameter.numel() for parameter in vote.parameters()) == parameters


@pytest.mark.parametrize(("kind", "rank"), [("unshared", None), ("shared", None), ("low_rank", 8)])
def test_a_vote_starts_as_long_as_its_child(kind: str, rank: int | None) -> None:
    """PEERS: Xavier on a 5-D tensor made public votes 80 times too short."""
    vote = make_votes(kind, children=50, parents=10, dim=64, rank=rank)
    u = torch.nn.functional.normalize(torch.randn(8, 50, 64), dim=2)
    assert vote(u).square().sum(dim=3).mean().sqrt().item() == pytest.approx(1, rel=0.1)
    vote.rescale(3.0)
    assert vote(u).square().sum(dim=3).mean().sqrt().item() == pytest.approx(3, rel=0.1)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind of votes 'lowrank'; did you mean 'low_rank'"):
        make_votes("lowrank", children=5, parents=3, dim=4)
    with pytest.raises(ValueError, match="low_rank votes need a rank"):
        make_votes("low_rank", children=5, parents=3, dim=4)
    with pytest.raises(ValueError, match="rank=2 belongs to low_rank votes, but shared votes were asked for"):
        make_votes("shared", children=5, parents=3, dim=4, rank=2)
    with pytest.raises(ValueError, match="parents must be at least 1, but is 0"):
        make_votes("unshared", children=5, parents=0, dim=4)
