"""The walk over primary capsules against the plain layers: values, gradients, held gates, any precision."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from capsroute.capsules.compression import PositionalCompression
from capsroute.capsules.fused import primary_to_children
from capsroute.capsules.primary import PrimaryCapsules
from capsroute.capsules.squash import SQUASHES, SquashKind, squash_factor, squash_slope


def plain(features: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, mix: Tensor, kind: SquashKind) -> Tensor:
    primary = PrimaryCapsules(
        features=features.shape[2], kinds=mix.shape[1], dim=len(weight) // mix.shape[1], squash=kind
    ).to(features.dtype)
    names = {"weight": weight, "bias": bias}
    capsules, _ = torch.func.functional_call(primary, names, (features, mask))
    return torch.einsum("tkn,btkd->bnd", mix, capsules)


def case(
    batch: int, positions: int, kinds: int, dim: int, *, dtype: torch.dtype = torch.float64, scale: float = 1.0
) -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    features = scale * torch.randn(batch, 3, positions, dtype=dtype).transpose(1, 2)  # as a convolution leaves them
    mask = torch.arange(positions) < torch.arange(positions, positions - batch, -1)[:, None]
    features = features * mask[:, :, None]
    weight, bias = torch.randn(kinds * dim, 3, dtype=dtype), scale * torch.randn(kinds * dim, dtype=dtype)
    return features, mask, weight, bias, torch.randn(positions, kinds, 4, dtype=dtype)


@pytest.mark.parametrize("kind", SQUASHES)
@given(batch=st.integers(0, 70), positions=st.integers(1, 70), kinds=st.integers(1, 3), dim=st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_values_and_gradients_are_those_of_the_plain_layers(
    kind: SquashKind, batch: int, positions: int, kinds: int, dim: int
) -> None:
    features, mask, weight, bias, mix = case(batch, positions, kinds, dim)
    upstream = torch.randn(batch, 4, dim, dtype=torch.float64)
    results: list[tuple[Tensor, ...]] = []
    for walk in (plain, primary_to_children):
        leaves = [value.clone().requires_grad_() for value in (features, weight, bias, mix)]
        out = walk(leaves[0], mask, *leaves[1:], kind)
        results.append((out, *torch.autograd.grad(out, leaves, upstream)))
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", SQUASHES)
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0, 1e4])
def test_the_gradient_is_the_numerical_one_or_zero_at_zero(kind: SquashKind, scale: float) -> None:
    features, mask, weight, bias, mix = case(2, 3, 2, 2, scale=scale)
    leaves = [value.requires_grad_() for value in (features, weight, bias, mix)]

    def walk(*values: Tensor) -> Tensor:
        return primary_to_children(values[0], mask, *values[1:], kind)  # pyright: ignore

    if scale == 1.0:
        assert torch.autograd.gradcheck(walk, leaves)
    for walked, gone in zip(
        torch.autograd.grad(walk(*leaves).sum(), leaves),
        torch.autograd.grad(plain(leaves[0], mask, *leaves[1:], kind).sum(), leaves),  # pyright: ignore
        strict=True,
    ):
        torch.testing.assert_close(walked, gone, rtol=1e-9, atol=1e-12)


def test_a_second_backward_pass_gives_the_same() -> None:
    features, mask, weight, bias, mix = case(2, 5, 2, 3)
    features.requires_grad_()
    out = primary_to_children(features, mask, weight, bias, mix, "half").sum()
    first, second = (torch.autograd.grad(out, features, retain_graph=True)[0] for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@pytest.mark.parametrize("kind", SQUASHES)
def test_the_slope_is_the_derivative(kind: SquashKind) -> None:
    r = torch.tensor([1e-6, 1e-3, 0.1, 1.0, 30.0, 1e4], dtype=torch.float64, requires_grad=True)
    derivative = torch.autograd.grad(squash_factor(r, kind).sum(), r)[0]
    torch.testing.assert_close(squash_slope(r, kind) * r, derivative, rtol=1e-6, atol=1e-12)
    assert squash_slope(torch.zeros(1), kind) == 0


def test_compression_walks_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    primary = PrimaryCapsules(features=3, kinds=2, dim=4)
    compression = PositionalCompression(children=5, positions=6, kinds=2, capsule_length=0.5)
    features, mask = torch.randn(2, 9, 3), torch.ones(2, 9, dtype=torch.bool)
    walked = compression(features, mask, primary)
    monkeypatch.setattr(PrimaryCapsules, "forward", lambda *_: pytest.fail("the plain layer was called"))
    compression(features, mask, primary)
    monkeypatch.undo()
    monkeypatch.setattr("capsroute.capsules.compression.closed_forms", lambda _: False)  # pyright: ignore
    torch.testing.assert_close(compression(features, mask, primary), walked)
