"""Squash: shorten a vector so that its length can be read as a probability, and keep its direction.

    squash(x) = phi(|x|) x        sabour       phi(r) = r / (1 + r^2)      length r^2 / (1 + r^2)
                                  half         phi(r) = r / (0.5 + r^2)    length r^2 / (0.5 + r^2)
                                  exponential  phi(r) = (1 - e^-r) / r     length 1 - e^-r

No epsilon is needed: phi is written as a function of the length, whose gradient PyTorch defines as zero at
the zero vector, and there x -> |x| x has the derivative zero in truth.

>>> squash(torch.tensor([3.0, 4.0]))
tensor([0.5769, 0.7692])
"""

from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from capsroute.capsules.gates import closed_forms, gate
from capsroute.capsules.guards import is_a
from capsroute.checks import one_of

SquashKind = Literal["sabour", "half", "exponential"]
SQUASHES: tuple[SquashKind, ...] = get_args(SquashKind)
NEAR_ZERO = 1e-2


def length(x: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """Euclidean length; its gradient at the zero vector is zero, not NaN."""
    return cast(Tensor, torch.linalg.vector_norm(x, dim=dim, keepdim=keepdim))  # pyright: ignore


def squash_factor(r: Tensor, kind: SquashKind = "sabour") -> Tensor:
    """phi(r): what squash multiplies a vector of length r by."""
    one_of("squash", kind, SQUASHES)
    if kind == "exponential":
        # Near zero the quotient is 0 / 0 and its gradient cancels; there the series is exact.
        safe = r.clamp_min(NEAR_ZERO)
        series = 1 - r * (1 / 2 - r * (1 / 6 - r * (1 / 24 - r * (1 / 120 - r / 720))))
        return torch.where(r < NEAR_ZERO, series, -torch.expm1(-safe) / safe)
    return r / ((1.0 if kind == "sabour" else 0.5) + r * r)


def squash_slope(r: Tensor, kind: SquashKind = "sabour") -> Tensor:
    """phi'(r) / r: what a closed-form gradient of squash(x) = phi(|x|) x needs, dx = phi dy + phi' / r (x . dy) x.

    Zero at r = 0, where what it multiplies is zero.
    """
    one_of("squash", kind, SQUASHES)
    if kind == "exponential":
        safe = r.clamp_min(NEAR_ZERO)
        series = -1 / 2 + r * (1 / 3 - r * (1 / 8 - r * (1 / 30 - r / 144)))
        slope = torch.where(r < NEAR_ZERO, series, (torch.exp(-safe) - squash_factor(safe, kind)) / safe)
    else:
        constant = 1.0 if kind == "sabour" else 0.5
        slope = (constant - r * r) / (constant + r * r) ** 2
    return torch.where(r > 0, slope / r.clamp_min(torch.finfo(r.dtype).tiny ** 0.5), 0)


def squash(x: Tensor, kind: SquashKind = "sabour", dim: int = -1) -> Tensor:
    """Shorten x along `dim` to a length in [0, 1)."""
    is_a("x", x, Tensor)
    if not x.is_floating_point():
        raise ValueError(f"x must be floating point, but has the dtype {x.dtype}.")
    if closed_forms(x):
        return _Squash.apply(x, kind, dim)  # pyright: ignore
    return x * gate(squash_factor(length(x, dim, keepdim=True), kind))


class _Squash(torch.autograd.Function):
    """Recorded, the gradient walks over x five times; in closed form, dx = phi dy + phi' / r (x . dy) x, three."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kind: SquashKind, dim: int) -> Tensor:
        r = length(x, dim, keepdim=True)
        factor = squash_factor(r, kind)
        ctx.save_for_backward(x, r, factor)
        ctx.kind, ctx.dim = kind, dim
        return x * factor

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        x, r, factor = ctx.saved_tensors
        dy = gradients[0]
        along = (x * dy).sum(dim=ctx.dim, keepdim=True) * squash_slope(r, ctx.kind)
        return (dy * factor).addcmul_(x, along), None, None
