"""Primary capsules and their compression in one walk over the texts: the same numbers, less memory traffic.

    r_tk = W_k g_t + b_k        u_n = sum_tk w_tkn phi(|r_tk|) r_tk

At the paper's sizes a batch has 32 x 50 x 64 primary capsules of 64 numbers, 26 MB that the plain reading writes
and reads a dozen times: product, squares, lengths, squash, mask, sum, and each again backwards. Here a few texts at
a time pass through all of it while they lie in the processor's cache; only r and |r| are kept for the gradient.

    dp = w du        dr = phi dp + phi'(|r|) / |r| (r . dp) r        dg = dr W        dW = dr g        dw = p du

Per position 3 (features + children) * kinds * dim multiply-adds, forward and backward. The plain reading, primary
capsules and then the compression, is the oracle (tests/test_fused.py).
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capsroute.capsules.squash import SquashKind, squash_factor, squash_slope

ROWS_AT_ONCE = 64
"""Positions to multiply at a time: enough for the matrix product, few enough for the second-level cache."""


def primary_to_children(
    features: Float[Tensor, "batch position feature"],
    mask: Bool[Tensor, "batch position"],
    weight: Float[Tensor, "kind_dim feature"],
    bias: Float[Tensor, " kind_dim"],
    mix: Float[Tensor, "position kind child"],
    kind: SquashKind,
) -> Float[Tensor, "batch child dim"]:
    """The children that primary capsules with these weights have under this compression."""
    return _PrimaryToChildren.apply(features, mask, weight, bias, mix, kind)  # pyright: ignore


class _PrimaryToChildren(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        mask: Tensor,
        weight: Tensor,
        bias: Tensor,
        mix: Tensor,
        kind: SquashKind,
    ) -> Tensor:
        features = features.contiguous()  # a convolution leaves them the other way round
        batch, positions, _ = features.shape
        kinds, children = mix.shape[1:]
        dim = weight.shape[0] // kinds
        keep = any(ctx.needs_input_grad)
        raw = features.new_empty(batch if keep else _texts_at_once(positions), positions, kinds, dim)
        lengths = features.new_empty(batch, positions, kinds)
        out = features.new_empty(batch, children, dim)
        by_child = mix.flatten(0, 1).T
        for part in _parts(batch, positions):
            r = raw[part] if keep else raw[: part.stop - part.start]
            rows = r.view(-1, kinds * dim)
            torch.mm(features[part].flatten(0, 1), weight.T, out=rows)
            rows += bias
            torch.linalg.vector_norm(r, dim=3, out=lengths[part])  # pyright: ignore
            factor = squash_factor(lengths[part], kind) * mask[part][:, :, None]
            for squashed, child in zip((r * factor[..., None]).flatten(1, 2), out[part], strict=True):
                torch.mm(by_child, squashed, out=child)
        if keep:
            ctx.save_for_backward(features, mask, weight, mix, raw, lengths)
            ctx.kind = kind
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        features, mask, weight, mix, raw, lengths = ctx.saved_tensors
        (du,) = gradients
        batch, positions, kinds, dim = raw.shape
        flat_mix = mix.flatten(0, 1)
        d_features = torch.empty_like(features)
        d_weight, d_bias = torch.zeros_like(weight), weight.new_zeros(kinds * dim)
        d_mix = torch.zeros_like(flat_mix)
        for part in _parts(batch, positions):
            r, r_length, there = raw[part], lengths[part], mask[part][:, :, None]
            factor = squash_factor(r_length, ctx.kind) * there
            dr = torch.empty_like(r)
            for text, squashed in enumerate((r * factor[..., None]).flatten(1, 2)):
                of_text = du[part][text]
                d_mix.addmm_(squashed, of_text.T)
                torch.mm(flat_mix, of_text, out=dr[text].flatten(0, 1))
            along = (r * dr).sum(dim=3) * squash_slope(r_length, ctx.kind) * there
            dr = (dr * factor[..., None]).addcmul_(r, along[..., None])
            rows = dr.view(-1, kinds * dim)
            torch.mm(rows, weight, out=d_features[part].view(-1, features.shape[2]))
            d_weight.addmm_(rows.T, features[part].flatten(0, 1))
            d_bias += rows.sum(dim=0)
        return d_features, None, d_weight, d_bias, d_mix.view_as(mix), None


def _texts_at_once(positions: int) -> int:
    return max(1, ROWS_AT_ONCE // max(1, positions))


def _parts(batch: int, positions: int) -> Iterator[slice]:
    """A batch in slices of a few texts."""
    step = _texts_at_once(positions)
    for start in range(0, batch, step):
        yield slice(start, min(start + step, batch))
