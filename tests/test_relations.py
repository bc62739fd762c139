"""Distances against scipy and POT, relations against cases worked by hand."""

from math import exp, log

import numpy as np
import ot
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

from capsroute.capsules.relations import (
    CapsuleGraph,
    RenormalisedRelation,
    SoftmaxRelation,
    Wasserstein,
    distance_matrix,
    relation,
    row_entropy,
)

DISTANCES = [
    "wasserstein",
    "euclidean",
    "cosine",
    Wasserstein(reduction="sum"),
    Wasserstein(reading="positions"),
    Wasserstein(reading="positions", masses="softmax"),
    Wasserstein(reading="identity"),
]


def capsules(batch: int = 2, children: int = 5, dim: int = 7) -> torch.Tensor:
    return torch.randn(batch, children, dim, dtype=torch.float64)


def pairs(x: torch.Tensor, function) -> np.ndarray:
    """function(x_i, x_k) for every pair of every document."""
    rows = x.numpy()
    return np.array([[[function(a, b) for b in document] for a in document] for document in rows])


def test_wasserstein_equals_scipy() -> None:
    x = capsules()
    np.testing.assert_allclose(distance_matrix(x).numpy(), pairs(x, wasserstein_distance), atol=1e-12)


def test_wasserstein_equals_optimal_transport() -> None:
    """POT solves the transport problem itself: components are samples of weight 1 / dim."""
    x = capsules()
    even = np.full(x.shape[2], 1 / x.shape[2])

    def transport(a: np.ndarray, b: np.ndarray) -> float:
        return ot.emd2(even, even, np.abs(a[:, None] - b[None, :]))

    np.testing.assert_allclose(distance_matrix(x).numpy(), pairs(x, transport), atol=1e-9)


@pytest.mark.parametrize("masses", ["absolute", "softmax"])
def test_wasserstein_of_positions_equals_scipy(masses: str) -> None:
    x = capsules()
    place = np.arange(x.shape[2])
    mass = x.abs() if masses == "absolute" else x.softmax(dim=2)

    def between(a: np.ndarray, b: np.ndarray) -> float:
        return wasserstein_distance(place, place, a, b)

    ours = distance_matrix(x, Wasserstein(reading="positions", masses=masses, reduction="sum"))
    np.testing.assert_allclose(ours.numpy(), pairs(mass, between), atol=1e-12)


def test_euclidean_cosine_and_l1_equal_scipy() -> None:
    x = capsules()
    l1 = Wasserstein(reading="identity", reduction="sum")
    for kind, name in (("euclidean", "euclidean"), ("cosine", "cosine"), (l1, "cityblock")):
        expected = np.stack([cdist(document, document, name) for document in x.numpy()])
        np.testing.assert_allclose(distance_matrix(x, kind).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("kind", DISTANCES, ids=str)
@given(
    children=st.integers(1, 5),
    dim=st.integers(1, 6),
    scale=st.sampled_from([0.0, 1e-8, 1.0, 1e4]),
    seed=st.integers(0, 99),
)
def test_every_distance_is_one(kind, children: int, dim: int, scale: float, seed: int) -> None:
    """Zero to itself, symmetric, not negative, finite with a finite gradient, also for zero capsules."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1, children, dim, dtype=torch.float64, generator=generator) * scale
    x.requires_grad_()
    d = distance_matrix(x, kind)
    assert torch.equal(d.diagonal(dim1=1, dim2=2), torch.zeros(1, children, dtype=torch.float64))
    assert torch.allclose(d, d.transpose(1, 2))
    assert (d >= -1e-12).all()
    d.sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("kind", ["wasserstein", "euclidean", Wasserstein(reading="identity")], ids=str)
def test_metrics_keep_the_triangle_inequality(kind) -> None:
    d = distance_matrix(capsules(children=6), kind)
    assert (d[:, :, None, :] <= d[:, :, :, None] + d[:, None, :, :].transpose(2, 3) + 1e-12).all()


def test_the_order_of_components_means_nothing_to_wasserstein() -> None:
    x = torch.tensor([[[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]])
    assert not distance_matrix(x).any()
    assert distance_matrix(x, Wasserstein(reading="identity")).any()


def test_softmax_by_hand() -> None:
    """Two capsules at distance ln 2: exp(-0) : exp(-ln 2) = 2 : 1."""
    d = torch.tensor([[[0.0, log(2)], [log(2), 0.0]]], dtype=torch.float64)
    third = 1 / 3
    expected = torch.tensor([[[2 * third + 1, third], [third, 2 * third + 1]]], dtype=torch.float64)
    assert torch.allclose(relation(d), expected)
    assert torch.allclose(relation(d, SoftmaxRelation(halve=True)), expected / 2)
    assert torch.allclose(relation(d, SoftmaxRelation(self_loop=False)), expected - torch.eye(2))
    # At temperature 1/2 the odds are squared.
    fifth = torch.tensor([[[0.8, 0.2], [0.2, 0.8]]], dtype=torch.float64)
    assert torch.allclose(relation(d, temperature=0.5), fifth + torch.eye(2))


def test_renormalised_by_hand() -> None:
    """M = exp(-d) + I = [[2, a], [a, 2]], both degrees 2 + a."""
    a = exp(-0.3)
    d = torch.tensor([[[0.0, 0.3], [0.3, 0.0]]], dtype=torch.float64)
    expected = torch.tensor([[[2.0, a], [a, 2.0]]], dtype=torch.float64) / (2 + a)
    assert torch.allclose(relation(d, "renormalised", distance="euclidean"), expected)
    cosine = torch.tensor([[[2.0, 0.7], [0.7, 2.0]]], dtype=torch.float64) / 2.7
    assert torch.allclose(relation(d, "renormalised", distance="cosine"), cosine)


def test_renormalised_takes_a_negative_cosine_as_zero() -> None:
    x = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    graph = CapsuleGraph("cosine", "renormalised", 1.0)
    assert torch.allclose(graph(x, torch.ones(1, 2, dtype=torch.bool)), torch.eye(2)[None])


def test_identity_measures_no_distance() -> None:
    x = torch.randn(2, 3, 4)
    graph = CapsuleGraph("wasserstein", "identity", 1.0)
    assert torch.equal(graph(x, torch.ones(2, 3, dtype=torch.bool)), torch.eye(3).expand(2, 3, 3))
    assert torch.equal(relation(distance_matrix(x), "identity"), torch.eye(3).expand(2, 3, 3))


@pytest.mark.parametrize("distance", ["wasserstein", "euclidean", "cosine"])
def test_eigenvalues_of_the_papers_relation(distance: str) -> None:
    """The paper says that they lie in [0, 1]; rows sum to 2, so 2 is always one of them (fidelity.md, row 5)."""
    r = relation(distance_matrix(capsules(dim=16), distance))
    eigenvalues = torch.linalg.eigvals(r).real
    assert torch.allclose(eigenvalues.max(dim=1).values, torch.full((2,), 2.0, dtype=torch.float64))
    assert (eigenvalues >= 1 - 1e-9).all()
    halved = torch.linalg.eigvals(r - torch.eye(5)).real
    assert (halved <= 1 + 1e-9).all()


def test_renormalised_eigenvalues_lie_within_one() -> None:
    graph = CapsuleGraph("wasserstein", RenormalisedRelation(), 1.0)
    eigenvalues = torch.linalg.eigvalsh(graph(capsules(), torch.ones(2, 5, dtype=torch.bool)))
    assert (eigenvalues.abs() <= 1 + 1e-9).all()


def test_row_entropy() -> None:
    even = torch.full((1, 4, 4), 0.25)
    assert torch.allclose(row_entropy(even), torch.ones(1, 4))
    assert torch.allclose(row_entropy(torch.eye(4)[None]), torch.zeros(1, 4))
    half = torch.tensor([[[0.5, 0.5, 0.0, 0.0]] * 4])
    assert torch.allclose(row_entropy(half), torch.full((1, 4), 0.5))
    assert torch.allclose(row_entropy(torch.ones(1, 1, 1)), torch.ones(1, 1))


def test_row_entropy_counts_the_children_that_are_there() -> None:
    """Two of four, read evenly, are as even as it can be."""
    mask = torch.tensor([[True, True, False, False]])
    weights = torch.zeros(1, 4, 4)
    weights[0, :2, :2] = 0.5
    assert torch.allclose(row_entropy(weights, mask), torch.tensor([[1.0, 1.0, 0.0, 0.0]]))


# Affinities are taken as equal; those of cosines differ so much that three applications leave 1.4 times as much.
@pytest.mark.parametrize(("distance", "applications"), [("wasserstein", 1), ("wasserstein", 3), ("cosine", 1)])
@pytest.mark.parametrize(
    "normalisation",
    [
        SoftmaxRelation(),
        SoftmaxRelation(halve=True),
        SoftmaxRelation(self_loop=False),
        SoftmaxRelation(self_loop=False, halve=True),
        RenormalisedRelation(),
    ],
    ids=["plain", "halved", "without_loop", "without_loop_halved", "renormalised"],
)
def test_a_graph_leaves_children_as_long_as_derived(normalisation, distance: str, applications: int) -> None:
    """On unrelated children of length 1, as long as the scales of the votes count with."""
    graph = CapsuleGraph(distance, normalisation, 1.0)
    u = torch.nn.functional.normalize(torch.randn(8, 30, 64, dtype=torch.float64), dim=2)
    r = graph(u, torch.ones(8, 30, dtype=torch.bool))
    mixed = u
    for _ in range(applications):
        mixed = r @ mixed
    measured = mixed.square().sum(dim=2).mean().sqrt().item()
    assert measured == pytest.approx(graph.norm(30, 64, applications), rel=0.15)


def test_at_the_papers_temperature_the_wasserstein_graph_is_a_mean() -> None:
    """The finding of fidelity.md, row 3b, on squashed capsules of 64 dimensions; a small temperature mends it."""
    from capsroute.capsules.squash import squash

    x = squash(torch.randn(4, 50, 64) * 0.3)
    flat = CapsuleGraph("wasserstein", "softmax", 1.0).entropy(x)
    sharp = CapsuleGraph("wasserstein", "softmax", 0.005).entropy(x)
    assert (flat > 0.9999).all()
    assert (sharp < 0.9).all()


def test_a_learned_temperature_starts_at_one_and_has_a_gradient() -> None:
    x = capsules(dim=8)
    learned = CapsuleGraph("euclidean", "softmax", "learned").double()
    mask = torch.ones(2, 5, dtype=torch.bool)
    r = learned(x, mask)
    assert torch.allclose(r, CapsuleGraph("euclidean", "softmax", 1.0)(x, mask))
    r.square().sum().backward()
    (parameter,) = learned.parameters()
    assert parameter.grad is not None
    assert parameter.grad.abs() > 1e-6


def test_bad_names_and_settings_are_refused() -> None:
    x = capsules()
    with pytest.raises(ValueError, match=r"unknown distance 'wasserstien'; did you mean 'wasserstein'\?"):
        distance_matrix(x, "wasserstien")
    with pytest.raises(ValueError, match="unknown normalisation 'none'"):
        relation(distance_matrix(x), "none")
    with pytest.raises(ValueError, match="temperature must be greater than 0, but is 0"):
        relation(distance_matrix(x), temperature=0)
    with pytest.raises(ValueError, match=r"temperature=0.5 has no meaning with normalisation 'identity'"):
        relation(distance_matrix(x), "identity", temperature=0.5)
    with pytest.raises(ValueError, match="unknown reading of the Wasserstein distance 'cdf'"):
        Wasserstein(reading="cdf")
    with pytest.raises(ValueError, match="row entropy is defined for the softmax normalisation"):
        CapsuleGraph("cosine", "identity", 1.0).entropy(x)
