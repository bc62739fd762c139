"""Parents are cluster centres: they start at the mean vote, and children choose the centre they point to.

Ren and Lu 2018, Compositional Coding Capsule Network with K-Means Routing (arXiv 1810.09177).

    v_j = mean_i û_ij;  repeat:  c_ij = softmax_j(û_ij . v_j / |v_j|);  v_j = sum_i c_ij û_ij;  at the end squash(v_j)

Relations: `dynamic` without a memory: its logits are not added up, and squash comes once, at the end; `em` without
variances and priors.
Departures: the authors' first public code takes the softmax over the children; here, as everywhere in capsroute and
as a k-means assignment asks, it runs over the parents. `similarity="cosine"` divides by |û_ij| as well.
Cost: O(children * parents * dim) for each pass; parameters: none.

>>> import torch
>>> votes = torch.randn(2, 5, 3, 4)
>>> routed = KmeansRouting(children=5, parents=3, dim=4)(torch.randn(2, 5, 4), lambda children: votes)
>>> torch.allclose(routed.coupling.sum(2), torch.ones(2, 5))
True
"""

from typing import Literal, final, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from capsroute.capsules.squash import SQUASHES, SquashKind, length, squash
from capsroute.checks import one_of
from capsroute.routing.base import Routed, Routing, Vote, agreement, even_shares, weighted_sum

Similarity = Literal["dot", "cosine"]
SHORTEST = 1e-6  # a shorter centre has no direction


@final
class KmeansRouting(Routing):
    """Soft k-means.

    Args:
        similarity: of a vote and the direction of a centre: `dot` or `cosine`.
        squash: the squash of the parents.
    """

    coupling_axis = "parent"

    def __init__(
        self,
        *,
        children: int | None,
        parents: int,
        dim: int,
        iterations: int = 3,
        similarity: Similarity = "dot",
        squash: SquashKind = "sabour",
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        one_of("similarity", similarity, get_args(Similarity))
        one_of("squash", squash, SQUASHES)
        self.similarity: Similarity = similarity
        self.squash: SquashKind = squash

    def initial_gain(self, children: int) -> float:  # noqa: ARG002
        return 1 / self.n_parents

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        votes = vote(children)
        pointers = votes if self.similarity == "dot" else F.normalize(votes, dim=3, eps=SHORTEST)

        def assign(centres: Tensor) -> tuple[Tensor, Tensor]:
            likeness = agreement(pointers, F.normalize(centres, dim=2, eps=SHORTEST))
            coupling = likeness.softmax(dim=2) * mask[:, :, None]
            return coupling, weighted_sum(coupling, votes)

        coupling, centres = assign(torch.einsum("bi,bijd->bjd", even_shares(mask, votes), votes))
        for _ in range(self.iterations - 1):
            coupling, centres = assign(centres)
        parents = squash(centres, self.squash)
        return Routed(parents, length(parents), coupling, coupling, voters=children)
