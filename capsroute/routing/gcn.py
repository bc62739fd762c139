"""The graph without the routing: children read their neighbours, vote, and every parent takes the mean.

Li et al., Graph Routing between Capsules, section 5.2 ("GCN"): the paper's ablation.

    h_ij = W_ij (sum_k R_ik u_k) + b_ij;   v_j = squash(mean_i h_ij)        R = softmax(A) + I, A by Wasserstein

Relations: `graph` without attention and agreement; `mean` pooling with the identity relation.
Departures: the paper only says that the capsules are mapped "to the final output by aggregating directly"; a mean is
how a graph convolution is read out. There is one pass: `iterations` is checked and changes nothing.
Cost: O(children^2 * dim + children * parents * dim); parameters: none, or 1 for a learned temperature.

>>> import torch
>>> vote = torch.nn.Unflatten(2, (2, 4))
>>> GcnRouting(children=5, parents=2, dim=4)(torch.randn(3, 5, 8), vote).relation.shape
torch.Size([3, 5, 5])
"""

from typing import Literal, final

from jaxtyping import Bool, Float
from torch import Tensor

from capsroute.capsules.relations import (
    CapsuleGraph,
    Distance,
    DistanceName,
    Normalisation,
    NormalisationName,
)
from capsroute.capsules.squash import SQUASHES, SquashKind, length, squash
from capsroute.checks import one_of
from capsroute.routing.base import Routed, Routing, Vote, even_shares, weighted_sum


@final
class GcnRouting(Routing):
    """One graph convolution and a mean.

    Args:
        distance, normalisation, temperature: the graph; see `capsules/relations.py`.
        squash: the squash of the parents.
    """

    coupling_axis = "child"

    def __init__(
        self,
        *,
        children: int | None,
        parents: int,
        dim: int,
        iterations: int = 3,
        distance: DistanceName | Distance = "wasserstein",
        normalisation: NormalisationName | Normalisation = "softmax",
        temperature: float | Literal["learned"] = 1.0,
        squash: SquashKind = "sabour",
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        one_of("squash", squash, SQUASHES)
        self.graph = CapsuleGraph(distance, normalisation, temperature)
        self.squash: SquashKind = squash

    def initial_gain(self, children: int) -> float:
        return self.graph.norm(children, self.dim) / children

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        relation = self.graph(children, mask)
        voters = relation @ children
        hidden = vote(voters)
        gain = even_shares(mask, hidden)[:, :, None].expand(-1, -1, self.n_parents)
        parents = squash(weighted_sum(gain, hidden), self.squash)
        return Routed(parents, length(parents), gain, gain, relation, voters)
