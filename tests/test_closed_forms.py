"""Gradients in closed form against the recorded operations that they stand for."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from capsroute.capsules.differences import in_order, l1_distances
from capsroute.capsules.gates import closed_forms, held_gates
from capsroute.capsules.squash import SQUASHES, SquashKind, length, squash, squash_factor
from capsroute.capsules.unshared import unshared_votes
from capsroute.capsules.votes import make_votes
from capsroute.routing import base, make_routing
from capsroute.routing.by_agreement import plain_loop, route_by_agreement
from capsroute.routing.kde import epanechnikov

SIZES = st.integers(1, 5)
Outcome = tuple[Tensor, ...]


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def same(closed: Callable[..., Outcome], plain: Callable[..., Outcome], *leaves: Tensor) -> None:
    """Values and gradients, with a gradient into every output."""
    results: list[Outcome] = []
    for way in (closed, plain):
        out = way(*leaves)
        torch.manual_seed(1)
        total = torch.stack([(value * torch.randn(value.shape, dtype=value.dtype)).sum() for value in out]).sum()
        results.append((*out, *torch.autograd.grad(total, leaves, materialize_grads=True)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", SQUASHES)
@pytest.mark.parametrize("leak", [None, 0.0, float("-inf")])
@pytest.mark.parametrize("apart", [True, False])
@given(batch=SIZES, children=SIZES, parents=SIZES, dim=SIZES, iterations=st.integers(1, 4))
@settings(max_examples=10, deadline=None)
def test_routing_by_agreement(
    kind: SquashKind,
    leak: float | None,
    apart: bool,
    batch: int,
    children: int,
    parents: int,
    dim: int,
    iterations: int,
) -> None:
    torch.manual_seed(0)
    votes, sent = leaf(batch, children, parents, dim), leaf(batch, children, parents, dim)
    weight = leaf(batch, children, parents)

    def closed(votes: Tensor, weight: Tensor, sent: Tensor | None = None) -> Outcome:
        return route_by_agreement(votes, weight, sent=sent, iterations=iterations, kind=kind, leak=leak)

    def plain(votes: Tensor, weight: Tensor, sent: Tensor | None = None) -> Outcome:
        return plain_loop(votes, votes if sent is None else sent, weight, iterations, kind, leak)

    same(closed, plain, votes, weight, *([sent] if apart else []))


@given(batch=SIZES, children=SIZES, parents=SIZES, dim=SIZES)
@settings(max_examples=20, deadline=None)
def test_unshared_votes(batch: int, children: int, parents: int, dim: int) -> None:
    torch.manual_seed(0)
    same(
        lambda u, w, b: (unshared_votes(u, w, b),),
        lambda u, w, b: (torch.einsum("bik,ijdk->bijd", u, w) + b,),
        leaf(batch, children, dim),
        leaf(children, parents, dim, dim),
        leaf(children, parents, dim),
    )


@pytest.mark.parametrize("kind", SQUASHES)
@given(batch=SIZES, dim=SIZES, scale=st.sampled_from([0.0, 1e-9, 1e-3, 1.0, 1e4]), along=st.sampled_from([0, 1, -1]))
@settings(max_examples=20, deadline=None)
def test_squash(kind: SquashKind, batch: int, dim: int, scale: float, along: int) -> None:
    torch.manual_seed(0)
    x = (scale * torch.randn(batch, dim, dtype=torch.float64)).requires_grad_()
    same(
        lambda x: (squash(x, kind, along),),
        lambda x: (x * squash_factor(length(x, along, keepdim=True), kind),),
        x,
    )


@given(batch=SIZES, children=SIZES, dim=SIZES)
@settings(max_examples=20, deadline=None)
def test_sorting_and_l1_distances(batch: int, children: int, dim: int) -> None:
    torch.manual_seed(0)
    x = leaf(batch, children, dim)
    same(lambda x: (in_order(x),), lambda x: (x.sort(dim=-1).values,), x)
    same(lambda x: (l1_distances(x),), lambda x: (torch.cdist(x, x, p=1.0),), x)


@given(batch=SIZES, children=SIZES, parents=SIZES, dim=SIZES)
@settings(max_examples=20, deadline=None)
def test_the_kernel_of_kde(batch: int, children: int, parents: int, dim: int) -> None:
    torch.manual_seed(0)
    same(
        lambda votes, centres: (epanechnikov(votes, centres),),
        lambda votes, centres: (1 - (votes - centres[:, None]).square().sum(dim=3),),
        leaf(batch, children, parents, dim),
        leaf(batch, parents, dim),
    )


@pytest.mark.parametrize("name", ["dynamic", "em", "adaptive_kde", "graph", "gcn", "max"])
def test_many_votes_are_routed_in_parts_with_the_same_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    vote = make_votes("unshared", children=4, parents=3, dim=5).double()
    routing = make_routing(name, children=4, parents=3, dim=5).double()
    weights = [*vote.parameters(), *routing.parameters()]
    u, mask = leaf(7, 4, 5), torch.rand(7, 4) > 0.3
    of_one = 4 * 3 * 5 * 8
    calls: list[int] = []
    route = routing.route
    monkeypatch.setattr(routing, "route", lambda u, *rest: calls.append(len(u)) or route(u, *rest))
    results: list[list[Tensor]] = []
    for most in (2**30, of_one):
        monkeypatch.setattr(base, "MANY_VOTES", most)
        monkeypatch.setattr(base, "VOTES_AT_ONCE", 3 * of_one)
        calls.clear()
        routed = routing(u, vote, mask)
        torch.manual_seed(1)
        total = (routed.parents * torch.randn(7, 3, 5)).sum() + (routed.activation * torch.randn(7, 3)).sum()
        gradients = torch.autograd.grad(total, [u, *weights], materialize_grads=True)
        results.append([*(field for field in routed if field is not None), *gradients])
    assert sorted(calls) == [1, 1, 3, 3, 3, 3]  # each part once more for its gradient
    for whole, in_parts in zip(*results, strict=True):
        torch.testing.assert_close(in_parts, whole)
    with torch.no_grad():
        torch.testing.assert_close(routing(u, vote, mask).parents, results[0][0])


def test_equal_children_have_no_gradient_between_them() -> None:
    x = torch.ones(1, 3, 2, requires_grad=True)
    l1_distances(x).sum().backward()
    assert x.grad is not None
    assert not x.grad.any()


def test_where_operations_must_be_recorded() -> None:
    x = torch.zeros(1)
    assert closed_forms(x)
    with held_gates():
        assert not closed_forms(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not closed_forms(x)


def test_gates_that_are_held_let_no_gradient_through_couplings() -> None:
    votes, weight = leaf(2, 3, 2, 4), leaf(2, 3, 2)
    with held_gates():
        parents = route_by_agreement(votes, weight, iterations=3, kind="sabour").parents
    assert torch.autograd.grad(parents.sum(), weight, allow_unused=True)[0] is None
