"""Children that agree with no parent leak away: one more parent takes them, and is thrown away.

Zhao et al. 2018, Investigating Capsule Networks with Dynamic Routing for Text Classification (arXiv 1804.00538),
"leaky softmax"; the authors confirmed this reading in their repository (capsule_text_classification, issue 15).

    as `dynamic`, with  c_ij = exp(b_ij) / (exp(leak) + sum_k exp(b_ik))        leak = 0

Relations: the leak at minus infinity is `dynamic`. The orphan class of the same paper is one more real parent: a
setting of the network, not of the routing.
Departures: none. The leak is a constant, as in the paper; nothing about it is learned.
Cost: O(children * parents * dim) for each pass; parameters: none.

>>> import torch
>>> votes = torch.randn(2, 5, 3, 4)
>>> routed = LeakyRouting(children=5, parents=3, dim=4)(torch.randn(2, 5, 4), lambda children: votes)
>>> bool((routed.coupling.sum(2) < 1).all())
True
"""

from typing import final

from jaxtyping import Bool, Float
from torch import Tensor

from capsroute.capsules.guards import number, yes_or_no
from capsroute.capsules.squash import SQUASHES, SquashKind, length
from capsroute.checks import one_of
from capsroute.routing.base import Routed, Routing, Vote
from capsroute.routing.by_agreement import route_by_agreement
from capsroute.routing.dynamic import child_weight


@final
class LeakyRouting(Routing):
    """Routing by agreement with a leak.

    Args:
        leak: logit of the parent that is thrown away.
        squash: the squash of the parents.
        amend: multiply each child's votes by the child's length (coefficient amendment).
    """

    coupling_axis = "leak"

    def __init__(
        self,
        *,
        children: int | None,
        parents: int,
        dim: int,
        iterations: int = 3,
        leak: float = 0.0,
        squash: SquashKind = "sabour",
        amend: bool = False,
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        one_of("squash", squash, SQUASHES)
        yes_or_no("amend", amend)
        if leak != float("-inf"):  # no leak at all
            number("leak", leak)
        self.leak = leak
        self.squash: SquashKind = squash
        self.amend = amend

    def initial_gain(self, children: int) -> float:  # noqa: ARG002
        return 1 / (self.n_parents + 1)

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        votes = vote(children)
        weight = child_weight(children, mask, amend=self.amend).expand(votes.shape[:3])
        coupling, parents = route_by_agreement(
            votes, weight, iterations=self.iterations, kind=self.squash, leak=self.leak
        )
        return Routed(parents, length(parents), coupling * mask[:, :, None], gain=coupling * weight, voters=children)
