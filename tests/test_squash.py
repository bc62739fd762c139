"""Squash: its formula, its limits, and gradients where public code gives NaN."""

from math import exp

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capsroute.capsules.squash import SQUASHES, squash
from tests import reference as ref

LENGTH = {
    "sabour": lambda r: r * r / (1 + r * r),
    "half": lambda r: r * r / (0.5 + r * r),
    "exponential": lambda r: 1 - exp(-r),
}


@pytest.mark.parametrize("kind", SQUASHES)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8))
def test_equals_the_reference(kind: str, values: list[float]) -> None:
    ours = squash(torch.tensor(values, dtype=torch.float64), kind)
    np.testing.assert_allclose(ours.numpy(), ref.squash(np.array(values), kind), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", SQUASHES)
@pytest.mark.parametrize("r", [1e-3, 0.1, 1.0, 3.0, 1e4])
def test_length_and_direction(kind: str, r: float) -> None:
    x = torch.tensor([3.0, -4.0], dtype=torch.float64) * (r / 5)
    squashed = squash(x, kind)
    assert squashed.norm().item() == pytest.approx(LENGTH[kind](r), rel=1e-9)
    assert torch.allclose(squashed / squashed.norm(), x / x.norm(), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", SQUASHES)
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-4, 1.0, 1e4])
def test_value_and_gradient_are_finite(kind: str, scale: float, dtype: torch.dtype) -> None:
    """PEERS: squash without care at zero gives NaN gradients in five public libraries."""
    x = torch.full((2, 4), scale, dtype=dtype, requires_grad=True)
    squashed = squash(x, kind)
    squashed.sum().backward()
    assert torch.isfinite(squashed).all()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    if scale == 0:
        assert not squashed.any()


@pytest.mark.parametrize("kind", SQUASHES)
@pytest.mark.parametrize("scale", [0.0, 1e-5, 5e-5, 2e-4, 1.0, 20.0])
def test_gradient_equals_the_numerical_one(kind: str, scale: float) -> None:
    """At zero too, and on both sides of the switch of the exponential form."""
    x = (scale * torch.tensor([[0.6, 0.8, 0.0]], dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: squash(x, kind), x, eps=1e-9, atol=1e-5)


def test_works_along_any_axis() -> None:
    x = torch.randn(2, 3, 4)
    assert torch.allclose(squash(x, dim=1), squash(x.transpose(1, 2)).transpose(1, 2))


def test_an_unknown_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown squash 'sabor'; did you mean 'sabour'\? Choose from: sabour"):
        squash(torch.ones(2), "sabor")
