"""Every routing, in every reading, against the loops of `reference.py`: 1e-10 in float64."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from torch import Tensor

from capsroute.capsules.relations import (
    CapsuleGraph,
    IdentityRelation,
    RenormalisedRelation,
    SoftmaxRelation,
    Wasserstein,
)
from capsroute.routing import ROUTINGS, Routed, Routing, VoteAttention
from capsroute.routing.specimen import MatrixVote, Subject, example, some_masked, stir
from tests import reference as ref
from tests.variants import VARIANTS, label

Array = NDArray[np.float64]
MASK = some_masked()


def numpy(tensor: Tensor) -> Array:
    return tensor.detach().numpy().astype(np.float64)


def relation_of(graph: CapsuleGraph, u: Array, alive: list[bool]) -> Array:
    """The relation of one document, from the equations."""
    distance = graph.distance
    if isinstance(distance, Wasserstein):
        name = {"sorted": "wasserstein_sorted", "positions": "wasserstein_positions", "identity": "l1"}[
            distance.reading
        ]
        matrix = ref.distance_matrix(u, name, distance.reduction, distance.masses)
    else:
        name = type(distance).__name__.lower()
        matrix = ref.distance_matrix(u, name)
    normalisation = graph.normalisation
    if isinstance(normalisation, SoftmaxRelation):
        temperature = normalisation.temperature
        if temperature == "learned":
            temperature = float(normalisation.log_temperature.detach().exp())
        return ref.softmax_relation(matrix, alive, temperature, normalisation.self_loop, normalisation.halve)
    if isinstance(normalisation, RenormalisedRelation):
        return ref.renormalised_relation(ref.affinity(matrix, name), alive)
    assert isinstance(normalisation, IdentityRelation)
    return ref.identity_relation(alive)


def expected(
    name: str, options: dict[str, Any], routing: Routing, u: Array, vote: Any, alive: list[bool], passes: int
) -> ref.Reference:
    """The reference for one document, with the weights of the routing under test."""
    votes = vote(u)
    weights = {key: numpy(value) for key, value in routing.state_dict().items()}
    squash = options.get("squash", "half" if "kde" in name else "sabour")
    match name:
        case "dynamic":
            return ref.dynamic(u, votes, alive, passes, squash, options.get("amend", False))
        case "leaky":
            return ref.leaky(u, votes, alive, passes, squash, options.get("leak", 0.0), options.get("amend", False))
        case "em":
            temperature = options.get("inverse_temperature", votes.shape[1] / (votes.shape[0] * votes.shape[2]))
            evidence = options.get("evidence", "sum")
            return ref.em(
                u, votes, alive, passes, temperature, weights["beta_use"], weights["beta_activate"], evidence
            )
        case "kde":
            return ref.kde(u, votes, alive, passes, squash)
        case "adaptive_kde":
            return ref.adaptive_kde(u, votes, alive, passes, options.get("tolerance", 0.05), squash)
        case "kmeans":
            return ref.kmeans(u, votes, alive, passes, options.get("similarity", "dot"), squash)
        case "gcn":
            return ref.gcn(u, vote, alive, relation_of(routing.graph, u, alive), squash)
        case "transformer":
            return ref.transformer(u, alive, weights, routing.heads, squash)
        case "max" | "mean" | "sum":
            return ref.pooling(u, votes, alive, name, squash)
        case "graph":
            attention = None
            if isinstance(routing.attention, VoteAttention):
                parts = (weights[f"attention.{part}"] for part in ("weight", "bias", "score"))
                attention = ref.AttentionParameters(*parts, routing.attention.axis, routing.attention.scale)
            return ref.graph(
                u,
                vote,
                alive,
                relation_of(routing.graph, u, alive),
                passes,
                attention,
                options.get("aggregate", "before"),
                weights.get("transform"),
                options.get("graph_passes", "once"),
                options.get("agreement", "votes"),
                squash,
            )
    raise AssertionError(f"no reference for {name}")


def vote_of(vote: MatrixVote) -> Any:
    weight, bias = numpy(vote.weight), numpy(vote.bias)
    return lambda u: ref.unshared_votes(u, weight, bias)


def assert_same(name: str, place: int, routed: Routed, reference: ref.Reference, options: dict[str, Any]) -> None:
    fields = ["parents", "activation", "coupling", "relation"]
    # "after" is reported as the gain of the plain votes, the reference's as that of the mixed ones: the contract
    # checks that ours adds up. Of the transformed form none is reported.
    if not str(options.get("aggregate", "")).startswith("after"):
        fields.append("gain")
    for field in fields:
        ours, theirs = getattr(routed, field), getattr(reference, field)
        assert (ours is None) == (theirs is None), field
        if ours is not None:
            np.testing.assert_allclose(numpy(ours[place]), theirs, rtol=0, atol=1e-10, err_msg=f"{name}: {field}")
    if routed.iterations is not None:
        assert int(routed.iterations[place]) == reference.passes


@pytest.mark.parametrize("passes", [1, 2, 3, 6])
@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_routing_equals_its_reference(variant: tuple[str, dict[str, Any]], passes: int) -> None:
    name, options = variant
    routing = Subject(ROUTINGS[name], options).make(iterations=passes)
    stir(routing)
    u, vote = example()
    routed = routing(u, vote, MASK)
    for place, alive in enumerate(MASK.tolist()):
        reference = expected(name, options, routing, numpy(u[place]), vote_of(vote), alive, passes)
        assert_same(name, place, routed, reference, options)


@pytest.mark.parametrize("scale", [0.01, 3.0, 10.0, 100.0])
@pytest.mark.parametrize("name", ["dynamic", "leaky", "kde", "adaptive_kde", "kmeans", "em", "graph"])
def test_short_and_long_votes_equal_the_reference(name: str, scale: float) -> None:
    """Where kernels are cut, softmaxes saturate and the public adaptive routing never stops."""
    routing = Subject(ROUTINGS[name]).make(iterations=8)
    u, vote = example(scale=scale)
    routed = routing(u, vote)
    for place in range(len(u)):
        alive = [True] * u.shape[1]
        reference = expected(name, {}, routing, numpy(u[place]), vote_of(vote), alive, 8)
        np.testing.assert_allclose(numpy(routed.parents[place]), reference.parents, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(numpy(routed.activation[place]), reference.activation, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", ROUTINGS)
@settings(max_examples=15)
@given(data=st.data(), children=st.integers(1, 4), parents=st.integers(1, 3), dim=st.integers(1, 4))
def test_any_sizes_and_values_equal_the_reference(
    name: str, data: st.DataObject, children: int, parents: int, dim: int
) -> None:
    """Drawn numbers: zeros, ties, opposites and lonely children, which random normal numbers never are."""
    numbers = st.floats(-8, 8, width=16)
    u = data.draw(arrays(np.float64, (children, dim), elements=numbers))
    alive = data.draw(st.lists(st.booleans(), min_size=children, max_size=children))
    passes = data.draw(st.integers(1, 4))
    routing = Subject(ROUTINGS[name]).make(children=children, parents=parents, dim=dim, iterations=passes)
    _, vote = example(children=children, parents=parents, dim=dim)
    routed = routing(torch.tensor(u)[None], vote, torch.tensor(alive)[None])
    reference = expected(name, {}, routing, u, vote_of(vote), alive, passes)
    np.testing.assert_allclose(numpy(routed.parents[0]), reference.parents, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(numpy(routed.activation[0]), reference.activation, rtol=1e-7, atol=1e-10)
