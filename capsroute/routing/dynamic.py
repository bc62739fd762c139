"""Every child gives most to the parents that agree with it: the standard routing by agreement.

Sabour, Frosst and Hinton 2017, Dynamic Routing Between Capsules (arXiv 1710.09829), procedure 1.

    b_ij = 0;  repeat:  c_ij = softmax_j(b_ij);  v_j = squash(sum_i c_ij û_ij);  b_ij += û_ij . v_j

Relations: `leaky` with the leak at minus infinity; `graph` with the identity relation and without attention.
Departures: none. The agreement after the last pass would not be used and is not computed. The gradient flows
through all passes. `amend` is the coefficient amendment of Zhao et al. 2018: a child's vote counts by its length.
Cost: O(children * parents * dim) for each pass; parameters: none.

>>> import torch
>>> votes = torch.randn(2, 5, 3, 4)
>>> routed = DynamicRouting(children=5, parents=3, dim=4)(torch.randn(2, 5, 4), lambda children: votes)
>>> routed.parents.shape, routed.coupling.shape
(torch.Size([2, 3, 4]), torch.Size([2, 5, 3]))
"""

from typing import final

from jaxtyping import Bool, Float
from torch import Tensor

from capsroute.capsules.guards import yes_or_no
from capsroute.capsules.squash import SQUASHES, SquashKind, length
from capsroute.checks import one_of
from capsroute.routing.base import Routed, Routing, Vote
from capsroute.routing.by_agreement import route_by_agreement


@final
class DynamicRouting(Routing):
    """Routing by agreement.

    Args:
        squash: the squash of the parents.
        amend: multiply each child's votes by the child's length.
    """

    coupling_axis = "parent"

    def __init__(
        self,
        *,
        children: int | None,
        parents: int,
        dim: int,
        iterations: int = 3,
        squash: SquashKind = "sabour",
        amend: bool = False,
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        one_of("squash", squash, SQUASHES)
        yes_or_no("amend", amend)
        self.squash: SquashKind = squash
        self.amend = amend

    def initial_gain(self, children: int) -> float:  # noqa: ARG002
        return 1 / self.n_parents

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        votes = vote(children)
        weight = child_weight(children, mask, amend=self.amend).expand(votes.shape[:3])
        coupling, parents = route_by_agreement(votes, weight, iterations=self.iterations, kind=self.squash)
        return Routed(parents, length(parents), coupling * mask[:, :, None], gain=coupling * weight, voters=children)


def child_weight(
    children: Float[Tensor, "batch child dim"], mask: Bool[Tensor, "batch child"], *, amend: bool
) -> Float[Tensor, "batch child 1"]:
    """What a child's votes count: 1, or amended its length; masked, nothing."""
    return ((length(children) if amend else children.new_ones(mask.shape)) * mask)[:, :, None]
