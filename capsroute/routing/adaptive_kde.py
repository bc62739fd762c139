"""KDE routing that stops, for each document by itself, when another pass changes little.

Zhao et al. 2019, Towards Scalable and Reliable Capsule Networks (arXiv 1906.02829), algorithm 1, restated so that it
always stops.

    as `kde`, with the kernel  k_ij = max(0, 1 - |squash(û_ij) - v_j|^2)
    and after each pass        L_t = log(max(sum_ij c_ij k_ij, 1e-8));   stop when |L_t - L_{t-1}| < tolerance

Relations: `kde` when it makes the same number of passes and no kernel is cut.
Departures: the published code takes the logarithm of an uncut sum, which is negative for long votes, and then never
stops; sums over the batch, so that a document's passes depend on its neighbours; compares the first pass with 0, so
that it makes two. Here the kernel is cut, each document has its own L, there is a bound, and at least two passes are
made where the bound allows. The number of passes is returned: the fewer, the clearer the agreement.
Cost: O(children * parents * dim) for each pass of the slowest document; parameters: none.

>>> import torch
>>> votes = torch.randn(2, 5, 3, 4)
>>> routed = AdaptiveKdeRouting(children=5, parents=3, dim=4)(torch.randn(2, 5, 4), lambda children: votes)
>>> bool(((2 <= routed.iterations) & (routed.iterations <= 10)).all())
True
"""

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capsroute.capsules.guards import number
from capsroute.capsules.squash import SQUASHES, SquashKind, length, squash
from capsroute.checks import above, one_of
from capsroute.routing.base import Routed, Routing, Vote, weighted_sum
from capsroute.routing.kde import epanechnikov, share_among_children

SMALLEST_DENSITY = 1e-8


@final
class AdaptiveKdeRouting(Routing):
    """Kernel density estimation with a stopping rule.

    Args:
        iterations: the most passes that any document gets.
        tolerance: a document is done when its log density moves by less.
        squash: the squash of votes and parents.
    """

    coupling_axis = "child"
    default_iterations = 10

    def __init__(
        self,
        *,
        children: int | None,
        parents: int,
        dim: int,
        iterations: int = 10,
        tolerance: float = 0.05,
        squash: SquashKind = "half",
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        number("tolerance", tolerance)
        above("tolerance", tolerance, 0)
        one_of("squash", squash, SQUASHES)
        self.tolerance = tolerance
        self.squash: SquashKind = squash

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        votes = vote(children)
        squashed = squash(votes, self.squash)
        logits = votes.new_zeros(votes.shape[:3])
        coupling = share_among_children(logits, mask)
        parents = squash(weighted_sum(coupling, votes), self.squash)
        passes = torch.ones(len(votes), dtype=torch.int64, device=votes.device)
        # A document that is done keeps its logits, and so its coupling and parents: passes for the others, which
        # all documents walk through together, cannot move it.
        density = votes.new_full((len(votes),), torch.inf)
        going = torch.ones_like(passes, dtype=torch.bool)
        for _ in range(self.iterations - 1):
            kernel = epanechnikov(squashed, parents).clamp_min(0)
            before, density = density, (coupling * kernel).sum(dim=(1, 2)).clamp_min(SMALLEST_DENSITY).log()
            going = going & ~((density - before).abs() < self.tolerance)
            logits = logits + kernel * going[:, None, None]
            coupling = share_among_children(logits, mask)
            parents = squash(weighted_sum(coupling, votes), self.squash)
            passes = passes + going
        return Routed(parents, length(parents), coupling, coupling, voters=children, iterations=passes)
