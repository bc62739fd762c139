"""The products of unshared votes, laid out for the routing that reads them.

    vote_ij = W_ij u_i + b_ij        du_i = sum_j W_ij^T dvote_ij        dW_ij = sum_batch dvote_ij u_i^T

Routing reads all votes for one parent at a time. Written as one einsum the votes come out child by child, each pass
copies them into order, and the gradient of W comes out transposed, to be copied once more. Here they are copied once,
to [batch, parent, child, dim], and the gradient is made as it is kept. The numbers are those of the einsum.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def unshared_votes(
    children: Float[Tensor, "batch child dim"],
    weight: Float[Tensor, "child parent dim dim"],
    bias: Float[Tensor, "child parent dim"],
) -> Float[Tensor, "batch child parent dim"]:
    """W_ij u_i + b_ij."""
    return _UnsharedVotes.apply(children, weight, bias)  # pyright: ignore


class _UnsharedVotes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, children: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(children, weight)
        products = torch.bmm(children.transpose(0, 1), weight.flatten(1, 2).transpose(1, 2))
        votes = products.new_empty(len(children), weight.shape[1], *children.shape[1:])
        # [child, batch, parent x dim] -> [batch, parent, child, dim], seen as [batch, child, parent, dim]
        torch.add(
            products.view(*products.shape[:2], *weight.shape[1:3]).permute(1, 2, 0, 3),
            bias.transpose(0, 1),
            out=votes,
        )
        return votes.transpose(1, 2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        children, weight = ctx.saved_tensors
        by_child = children.transpose(0, 1)
        d_votes = gradients[0].transpose(0, 1).flatten(2).contiguous()  # [child, batch, parent x dim]
        d_weight = torch.bmm(d_votes.transpose(1, 2), by_child).view_as(weight)
        d_children = torch.bmm(d_votes, weight.flatten(1, 2)).transpose(0, 1)
        return d_children, d_weight, d_votes.sum(dim=1).view(weight.shape[:3])
