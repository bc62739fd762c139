"""A parent is a mode of the density of votes, found by mean shift.

Zhang et al. 2018, Fast Dynamic Routing Based on Weighted Kernel Density Estimation (arXiv 1805.10807), in the form
of Zhao et al. 2019, Towards Scalable and Reliable Capsule Networks (arXiv 1906.02829), as released.

    b_ij = 0;  repeat:  c_ij = softmax_j(b_ij);  c_ij /= sum_i c_ij;  v_j = squash(sum_i c_ij û_ij);
                        b_ij += 1 - |squash(û_ij) - v_j|^2

Relations: `dynamic` with a weighted mean in place of the sum and a kernel in place of the dot product.
`adaptive_kde` stops by itself and cuts the kernel at zero.
Departures: none from the released form: the kernel is not cut, so it lies in (-3, 1]; agreement is measured between
squashed votes and parents, while the unsquashed votes are averaged; the squash constant is 0.5.
Cost: O(children * parents * dim) for each pass; parameters: none.

>>> import torch
>>> votes = torch.randn(2, 5, 3, 4)
>>> routed = KdeRouting(children=5, parents=3, dim=4)(torch.randn(2, 5, 4), lambda children: votes)
>>> torch.allclose(routed.coupling.sum(1), torch.ones(2, 3))
True
"""

from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capsroute.capsules.gates import closed_forms
from capsroute.capsules.squash import SQUASHES, SquashKind, length, squash
from capsroute.checks import one_of
from capsroute.routing.base import Routed, Routing, Vote, weighted_sum


def share_among_children(
    logits: Float[Tensor, "batch child parent"], mask: Bool[Tensor, "batch child"]
) -> Float[Tensor, "batch child parent"]:
    """Softmax over the parents, then for each parent divided by its sum over the children that are there."""
    coupling = logits.softmax(dim=2) * mask[:, :, None]
    return coupling / coupling.sum(dim=1, keepdim=True).clamp_min(torch.finfo(logits.dtype).tiny)


def epanechnikov(
    squashed_votes: Float[Tensor, "batch child parent dim"], parents: Float[Tensor, "batch parent dim"]
) -> Float[Tensor, "batch child parent"]:
    """1 - |vote - parent|^2, without the cut at zero."""
    if closed_forms(squashed_votes):
        return 1 - _SquaredDistance.apply(squashed_votes, parents)  # pyright: ignore
    return 1 - (squashed_votes - parents[:, None]).square().sum(dim=3)


class _SquaredDistance(torch.autograd.Function):
    """Recorded, its gradient walks over the votes four times; here once, and once more to add up the parents'."""

    @staticmethod
    def forward(ctx: Any, votes: Tensor, parents: Tensor) -> Tensor:
        difference = votes - parents[:, None]
        ctx.save_for_backward(difference)
        return difference.square().sum(dim=3)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore
        (difference,) = ctx.saved_tensors
        d_votes = difference * (2 * gradients[0])[..., None]
        return d_votes, -d_votes.sum(dim=1)


@final
class KdeRouting(Routing):
    """Kernel density estimation with a fixed number of passes.

    Args:
        squash: the squash of votes and parents.
    """

    coupling_axis = "child"

    def __init__(
        self,
        *,
        children: int | None,
        parents: int,
        dim: int,
        iterations: int = 3,
        squash: SquashKind = "half",
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        one_of("squash", squash, SQUASHES)
        self.squash: SquashKind = squash

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        votes = vote(children)
        squashed = squash(votes, self.squash)
        logits = votes.new_zeros(votes.shape[:3])
        coupling = share_among_children(logits, mask)
        parents = squash(weighted_sum(coupling, votes), self.squash)
        for _ in range(self.iterations - 1):
            logits = logits + epanechnikov(squashed, parents)
            coupling = share_among_children(logits, mask)
            parents = squash(weighted_sum(coupling, votes), self.squash)
        return Routed(parents, length(parents), coupling, coupling, voters=children)
