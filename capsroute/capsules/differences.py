"""Sorting and L1 distances among the children of a document, with the gradients that their shape allows.

    in_order      x_i -> its components in ascending order; a gradient goes back to where the component stood
    l1_distances  d_ij = sum_k |x_ik - x_jk|;   dx_ik = sum_j (g_ij + g_ji) sign(x_ik - x_jk)

NumPy sorts short rows on a processor several times as fast as torch. cdist does not know that both its sides are one:
recorded, its gradient is computed once for each side, but d is symmetric and both are the same sum.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from capsroute.capsules.gates import closed_forms

Children = Float[Tensor, "batch child dim"]


def in_order(x: Children) -> Children:
    """Each child's components in ascending order."""
    if x.device.type != "cpu" or not closed_forms(x):
        return x.sort(dim=-1).values
    return x.gather(-1, torch.as_tensor(np.argsort(x.detach().numpy(), axis=-1)))


def l1_distances(x: Children) -> Float[Tensor, "batch child child"]:
    """The L1 distance of every pair."""
    return _L1Distances.apply(x) if closed_forms(x) else torch.cdist(x, x, p=1.0)  # pyright: ignore


class _L1Distances(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        distances = torch.cdist(x, x, p=1.0)
        ctx.save_for_backward(x, distances)
        return distances

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # pyright: ignore
        x, distances = ctx.saved_tensors
        both = gradients[0] + gradients[0].transpose(1, 2)
        return torch.ops.aten._cdist_backward(both, x, x, 1.0, distances)
