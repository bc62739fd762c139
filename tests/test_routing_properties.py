"""Routings over drawn sizes and values, the relations among methods, and what wrong names get."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capsroute.capsules.votes import make_votes
from capsroute.routing import ROUTINGS, Routing, VoteAttention, make_routing
from capsroute.routing.contract import check_routing
from capsroute.routing.specimen import CHILDREN, DIM, PARENTS, example

SIZES = {"children": CHILDREN, "parents": PARENTS, "dim": DIM}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Sizes down to 1, a scale from zero to huge, and a mask that may hide everything."""
    children = draw(st.integers(1, 6))
    return {
        "batch": draw(st.integers(1, 3)),
        "children": children,
        "parents": draw(st.integers(1, 5)),
        "dim": draw(st.integers(1, 9)),
        "iterations": draw(st.integers(1, 5)),
        "scale": draw(st.sampled_from([0.0, 1e-20, 1e-3, 1.0, 30.0, 1e6])),
        "mask": draw(st.lists(st.booleans(), min_size=children, max_size=children)),
        "same": draw(st.booleans()),
    }


@pytest.mark.parametrize("name", ROUTINGS)
@settings(max_examples=40)
@given(drawn=documents())
def test_any_document_is_routed(name: str, drawn: dict[str, Any]) -> None:
    sizes = {axis: drawn[axis] for axis in ("children", "parents", "dim")}
    u, vote = example(batch=drawn["batch"], scale=drawn["scale"], dtype=torch.float32, **sizes)
    if drawn["same"]:
        u = u[:, :1].expand(-1, sizes["children"], -1).clone()  # all children alike: distances of exactly zero
    u.requires_grad_()
    mask = torch.tensor(drawn["mask"]).expand(drawn["batch"], -1)
    routed = make_routing(name, **sizes, iterations=drawn["iterations"])(u, vote, mask)
    assert torch.isfinite(routed.parents).all()
    assert ((routed.activation >= 0) & (routed.activation <= 1)).all()
    if routed.coupling is not None:
        assert not routed.coupling[~mask].any()
        assert (routed.coupling >= 0).all()
    if not mask.any():
        assert not routed.activation.any()
    (routed.parents.sum() + routed.activation.sum()).backward()
    assert u.grad is not None
    assert torch.isfinite(u.grad).all()


def assert_same_result(a: Routing, b: Routing) -> None:
    u, vote = example()
    mask = torch.rand(u.shape[:2]) > 0.3
    first, second = a(u, vote, mask), b(u, vote, mask)
    assert torch.allclose(first.parents, second.parents, atol=1e-14)
    assert torch.allclose(first.coupling, second.coupling, atol=1e-14)


@pytest.mark.parametrize("amend", [False, True])
def test_leaky_without_a_leak_is_dynamic(amend: bool) -> None:
    leaky = make_routing("leaky", **SIZES, leak=float("-inf"), amend=amend)
    assert_same_result(leaky, make_routing("dynamic", **SIZES, amend=amend))


@pytest.mark.parametrize("aggregate", ["before", "after", "after_transformed"])
@pytest.mark.parametrize("graph_passes", ["once", "each"])
def test_graph_with_the_identity_and_no_attention_is_dynamic(aggregate: str, graph_passes: str) -> None:
    graph = make_routing(
        "graph", **SIZES, normalisation="identity", attention=False, aggregate=aggregate, graph_passes=graph_passes
    ).double()
    assert_same_result(graph, make_routing("dynamic", **SIZES))


def test_attention_that_has_learned_nothing_weighs_all_votes_alike() -> None:
    plain = make_routing("graph", **SIZES, attention=False)
    for axis in ("children", "parents", "both"):
        assert_same_result(make_routing("graph", **SIZES, attention_axis=axis).double(), plain)


def test_the_graph_before_and_after_the_vote_are_one_with_shared_votes() -> None:
    """METHODS row 7: W (R u) = R (W u) if W is the same for all children and there is no bias."""
    torch.manual_seed(0)
    vote = make_votes("shared", children=CHILDREN, parents=PARENTS, dim=DIM).double()
    u, _ = example()
    before, after = (make_routing("graph", **SIZES, aggregate=way).double() for way in ("before", "after"))
    assert torch.allclose(before(u, vote).parents, after(u, vote).parents, atol=1e-14)


def test_gcn_with_the_identity_is_mean_pooling() -> None:
    assert_same_result(make_routing("gcn", **SIZES, normalisation="identity"), make_routing("mean", **SIZES))


def test_one_pass_of_kde_is_a_mean() -> None:
    assert_same_result(make_routing("kde", **SIZES, iterations=1, squash="sabour"), make_routing("mean", **SIZES))


def test_one_pass_of_dynamic_shares_evenly() -> None:
    u, vote = example()
    routed = make_routing("dynamic", **SIZES, iterations=1)(u, vote)
    assert torch.allclose(routed.coupling, torch.full_like(routed.coupling, 1 / PARENTS))


def test_more_passes_agree_more() -> None:
    """Routing by agreement sharpens the coupling: its entropy falls from pass to pass."""
    u, vote = example(scale=2.0)

    def entropy(passes: int) -> float:
        coupling = make_routing("dynamic", **SIZES, iterations=passes)(u, vote).coupling
        return torch.special.entr(coupling).sum(2).mean().item()

    entropies = [entropy(passes) for passes in (1, 2, 4, 8)]
    assert entropies == sorted(entropies, reverse=True)


@pytest.mark.parametrize("scale", [0.01, 1.0, 3.0, 10.0, 30.0, 100.0])
def test_adaptive_kde_always_stops_for_each_document_by_itself(scale: float) -> None:
    """PEERS: the public loop never ends at vote norms of 10, 30 and 100, and stops documents by their batch."""
    u, vote = example(batch=8)
    u = u * torch.logspace(-1, 1, 8, dtype=u.dtype)[:, None, None] * scale
    routing = make_routing("adaptive_kde", **SIZES, iterations=50)
    routed = routing(u, vote)
    assert (routed.iterations >= 2).all()
    assert (routed.iterations <= 50).all()
    assert torch.isfinite(routed.parents).all()
    alone = [int(routing(document[None], vote).iterations) for document in u]
    assert routed.iterations.tolist() == alone
    if scale == 1.0:
        assert len(set(alone)) > 1, "documents stop after different numbers of passes"


def test_adaptive_kde_stops_where_no_vote_is_near_any_parent() -> None:
    """Long votes that point away from each other: every kernel is zero, and so is the density."""
    u = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]]) * 1e6
    routed = make_routing("adaptive_kde", children=2, parents=1, dim=2)(u, lambda children: children[:, :, None])
    assert int(routed.iterations) == 2


def test_the_bound_of_adaptive_kde_is_kept() -> None:
    u, vote = example(scale=3.0)
    never = make_routing("adaptive_kde", **SIZES, tolerance=1e-300)
    assert never(u, vote).iterations.tolist() == [10] * len(u)


def test_an_instance_is_accepted_in_place_of_a_name() -> None:
    routing = make_routing("dynamic", **SIZES)
    assert make_routing(routing, **SIZES) is routing
    assert make_routing(routing, **SIZES, iterations=3) is routing
    with pytest.raises(ValueError, match="parents=7 was asked for, but the DynamicRouting given has 4"):
        make_routing(routing, children=CHILDREN, parents=7, dim=DIM)
    with pytest.raises(ValueError, match="iterations=5 was asked for, but the DynamicRouting given has 3"):
        make_routing(routing, **SIZES, iterations=5)
    with pytest.raises(ValueError, match=r"options \(squash\) go to a routing's name"):
        make_routing(routing, **SIZES, squash="half")


def test_attention_is_accepted_as_an_object() -> None:
    made = make_routing("graph", **SIZES, attention=VoteAttention(DIM, axis="parents")).double()
    u, vote = example()
    assert torch.isfinite(made(u, vote).parents).all()
    with pytest.raises(ValueError, match="attention_axis and attention_scale have no meaning unless attention=True"):
        make_routing("graph", **SIZES, attention=False, attention_axis="parents")


def test_wrong_names_are_refused_with_the_valid_ones_and_the_nearest() -> None:
    cases: dict[str, dict[str, Any]] = {
        "unknown routing 'dinamic'; did you mean 'dynamic'? Choose from: graph, dynamic, leaky, em, kde": {
            "name_or_instance": "dinamic"
        },
        "unknown option of routing 'graph' 'normalization'; did you mean 'normalisation'? Choose from: distance, ": {
            "name_or_instance": "graph",
            "normalization": "softmax",
        },
        "unknown option of routing 'kde' 'leak'. Choose from: squash.": {"name_or_instance": "kde", "leak": 1.0},
        "unknown squash 'sabor'; did you mean 'sabour'?": {"name_or_instance": "dynamic", "squash": "sabor"},
        "unknown distance 'euclid'; did you mean 'euclidean'?": {"name_or_instance": "graph", "distance": "euclid"},
        "unknown normalisation 'renormalized'; did you mean 'renormalised'?": {
            "name_or_instance": "graph",
            "normalisation": "renormalized",
        },
        "unknown attention_axis 'child'; did you mean 'children'?": {
            "name_or_instance": "graph",
            "attention_axis": "child",
        },
        "unknown aggregate 'befor'; did you mean 'before'?": {"name_or_instance": "graph", "aggregate": "befor"},
        "unknown evidence 'meen'; did you mean 'mean'?": {"name_or_instance": "em", "evidence": "meen"},
        "inverse_temperature must be greater than 0": {"name_or_instance": "em", "inverse_temperature": 0.0},
        "tolerance must be greater than 0": {"name_or_instance": "adaptive_kde", "tolerance": -1.0},
        "heads=4 must divide dim=6": {"name_or_instance": "transformer", "heads": 4},
        "unknown temperature 'learnt'; did you mean 'learned'?": {"name_or_instance": "gcn", "temperature": "learnt"},
    }
    for sentence, arguments in cases.items():
        name = arguments.pop("name_or_instance")
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared as it is written
            make_routing(name, **SIZES, **arguments)
        assert sentence in str(error.value)


def test_the_contract_finds_a_broken_routing() -> None:
    """A check that cannot fail is no check: each of these routings breaks one promise, and is caught for it."""
    from tests import broken

    for routing, promise in broken.ROUTINGS.items():
        with pytest.raises(AssertionError, match=promise):
            check_routing(routing)
