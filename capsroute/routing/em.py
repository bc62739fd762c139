"""Parents are Gaussian clusters of votes: a class is present when its cluster is tight.

Hinton, Sabour and Frosst 2018, Matrix Capsules with EM Routing (OpenReview HJWLfGWRb), on vector capsules.

    M   r_ij = R_ij |u_i|,  R_j = sum_i r_ij,  mu_j = sum_i r_ij û_ij / R_j,  var_j = sum_i r_ij (û_ij - mu_j)^2 / R_j
        cost_j = R_j sum_h (beta_use_j + log sigma_jh),  a_j = sigmoid(lambda (beta_activate_j - cost_j))
    E   R_ij = softmax_j(log a_j + sum_h log N(û_ijh; mu_jh, var_jh))

R starts at 1 / parents. The parent is mu_j and its score a_j, not a length.
Relations: `kmeans` with variances and priors.
Departures: a child is present by its length |u_i|; var has 1e-8 added. With 64 dimensions the sum over h makes R all
or nothing after one pass; `evidence="mean"` takes the mean and keeps it soft. lambda is parents / (children * dim)
unless given, the scale on which the cost of an average parent moves (1.25e-3 at the paper's sizes; public code has
1e-3), and beta_use starts at minus the log sigma of the first votes, so that a_j starts at a half.
Limit: with as many parents as children a cluster holds a vote or two, has no variance, and scores 1.
Cost: O(children * parents * dim) for each pass; parameters: 2 * parents.

>>> import torch
>>> votes = torch.randn(2, 5, 3, 4)
>>> routed = EmRouting(children=5, parents=3, dim=4)(torch.randn(2, 5, 4), lambda children: votes)
>>> routed.activation.shape
torch.Size([2, 3])
"""

from math import log, pi, sqrt
from typing import Literal, final, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capsroute.capsules.guards import number
from capsroute.capsules.scales import vote_length
from capsroute.capsules.squash import length
from capsroute.checks import above, one_of
from capsroute.routing.base import Routed, Routing, Vote, agreement, weighted_sum

Evidence = Literal["sum", "mean"]
VARIANCE_FLOOR = 1e-8
WEIGHT_FLOOR = 1e-8


@final
class EmRouting(Routing):
    """Expectation maximisation.

    Args:
        inverse_temperature: lambda; None: parents / (children * dim).
        evidence: over the dimensions, the log density of a vote is their `sum` (the formula) or `mean`.
    """

    coupling_axis = "parent"
    activation_is_length = False

    def __init__(
        self,
        *,
        children: int | None,
        parents: int,
        dim: int,
        iterations: int = 3,
        inverse_temperature: float | None = None,
        evidence: Evidence = "sum",
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        one_of("evidence", evidence, get_args(Evidence))
        if inverse_temperature is None:
            if children is None:
                raise ValueError("em needs inverse_temperature where the number of children is not fixed.")
            inverse_temperature = parents / (children * dim)
        number("inverse_temperature", inverse_temperature)
        above("inverse_temperature", inverse_temperature, 0)
        self.inverse_temperature = inverse_temperature
        self.evidence: Evidence = evidence
        first = vote_length(children, dim, self.initial_gain(children)) if children else 1.0
        log_sigma = log(first / sqrt(dim))  # a vote's length is spread over its components
        self.beta_use = nn.Parameter(torch.full((parents,), -log_sigma))
        self.beta_activate = nn.Parameter(torch.zeros(parents))

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        votes = vote(children)
        present = length(children) * mask
        coupling = votes.new_full(votes.shape[:3], 1 / self.n_parents)
        mean, squares, variance, logit, gain = self._maximise(coupling, present, votes)
        for _ in range(self.iterations - 1):
            coupling = self._expect(squares, variance, logit)
            mean, squares, variance, logit, gain = self._maximise(coupling, present, votes)
        return Routed(mean, logit.sigmoid(), coupling * mask[:, :, None], gain, voters=children)

    def _maximise(
        self, coupling: Tensor, present: Tensor, votes: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Fit each parent to the votes it receives: mean, squared distances from it, variance; the logit of its
        activation, and the gain."""
        received = coupling * present[:, :, None]
        total = received.sum(dim=1)  # R_j
        gain = received / total.clamp_min(WEIGHT_FLOOR)[:, None, :]
        mean = weighted_sum(gain, votes)
        squares = (votes - mean[:, None]).square()
        variance = weighted_sum(gain, squares) + VARIANCE_FLOOR
        cost = total * (self.beta_use * self.dim + 0.5 * variance.log().sum(dim=2))
        return mean, squares, variance, self.inverse_temperature * (self.beta_activate - cost), gain

    def _expect(self, squares: Tensor, variance: Tensor, logit: Tensor) -> Tensor:
        """Share out each child by how likely its votes are under each parent."""
        log_density = -0.5 * (agreement(squares, 1 / variance) + (variance.log() + log(2 * pi)).sum(dim=2)[:, None])
        evidence = log_density if self.evidence == "sum" else log_density / self.dim
        return (nn.functional.logsigmoid(logit)[:, None] + evidence).softmax(dim=2)
