"""No routing: every parent pools the votes of all children alike.

Li et al., Graph Routing between Capsules (arXiv 2106.11531), the table on BERT, where these are the rivals of routing
and the children are layers.

    v_j = squash(pool_i û_ij)        pool = max (of each component), mean or sum

Relations: `sum` is `dynamic` with every coupling at 1; `mean` is one pass of `kde`, or `gcn` with the identity
relation.
Departures: pooling happens once, so `iterations` is checked and changes nothing. `max` has no gain: its result is not
a weighted sum of votes; its coupling is the share of components in which a child is the maximum.
Cost: O(children * parents * dim); parameters: none.

>>> import torch
>>> votes = torch.tensor([[[[3.0, 0.0]], [[0.0, 4.0]]]])
>>> MaxPooling(children=2, parents=1, dim=2)(torch.randn(1, 2, 2), lambda children: votes).parents
tensor([[[0.5769, 0.7692]]])
"""

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capsroute.capsules.squash import SQUASHES, SquashKind, length, squash
from capsroute.checks import one_of
from capsroute.routing.base import Routed, Routing, Vote, even_shares, weighted_sum


class _Pooling(Routing):
    """What the three share: one pass, and a squash."""

    def __init__(
        self,
        *,
        children: int | None,
        parents: int,
        dim: int,
        iterations: int = 3,
        squash: SquashKind = "sabour",
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        one_of("squash", squash, SQUASHES)
        self.squash: SquashKind = squash


@final
class MaxPooling(_Pooling):
    """The largest of every component."""

    def initial_gain(self, children: int) -> float:
        # The largest of N normal numbers is about sqrt(2 ln N) of their deviations.
        return max(1.0, 2 * torch.tensor(float(children)).log().item()) ** 0.5 / children**0.5

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        votes = vote(children)
        lowest = torch.finfo(votes.dtype).min
        largest, winner = votes.masked_fill(~mask[:, :, None, None], lowest).max(dim=1)
        largest = largest * mask.any(dim=1)[:, None, None]  # a text without children has no maximum
        parents = squash(largest, self.squash)
        child = torch.arange(votes.shape[1], device=votes.device)
        share = (winner[:, None] == child[:, None, None]).to(votes.dtype).mean(dim=3)
        return Routed(parents, length(parents), share * mask[:, :, None], voters=children)


@final
class MeanPooling(_Pooling):
    """The mean vote."""

    coupling_axis = "child"

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        votes = vote(children)
        gain = even_shares(mask, votes)[:, :, None].expand(-1, -1, self.n_parents)
        parents = squash(weighted_sum(gain, votes), self.squash)
        return Routed(parents, length(parents), gain, gain, voters=children)


@final
class SumPooling(_Pooling):
    """The sum of the votes."""

    def initial_gain(self, children: int) -> float:  # noqa: ARG002
        return 1.0

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        votes = vote(children)
        gain = mask.to(votes.dtype)[:, :, None].expand(-1, -1, self.n_parents)
        parents = squash(weighted_sum(gain, votes), self.squash)
        return Routed(parents, length(parents), gain, gain, voters=children)
