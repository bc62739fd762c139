"""Children read their neighbours in a graph before they vote, attention weighs the votes, agreement routes them.

Li, Zhao, Cambria, Wang and Eger, Graph Routing between Capsules (arXiv 2106.11531), algorithm 1.

    R = softmax(A) + I, A = -distance(u);   h_ij = W_ij (sum_k R_ik u_k) + b_ij;   o_ij = alpha_ij h_ij
    e_ij = 0;  repeat:  c_ij = softmax_j(e_ij);  v_j = squash(sum_i c_ij o_ij);  e_ij += û_ij . v_j

û_ij = W_ij u_i + b_ij is the vote of the child alone.
Relations: `dynamic` with the identity relation and without attention; `gcn` is the graph without the routing.
Departures (docs/fidelity.md, rows 3 to 12): the printed algorithm leaves open what h, e and the attention's softmax
run over. Every reading is an option; the defaults are the ones argued for there.
Cost: O(children^2 * dim) for the graph (Wasserstein: children * dim log dim more), twice the votes, and
O(children * parents * dim^2) for the attention; parameters: dim * (dim + 2) for the attention,
dim^2 for `after_transformed`, 1 for a learned temperature.

>>> import torch
>>> vote = torch.nn.Sequential(torch.nn.Linear(4, 12), torch.nn.Unflatten(2, (3, 4)))
>>> routed = GraphRouting(children=5, parents=3, dim=4)(torch.randn(2, 5, 4), vote)
>>> routed.parents.shape, routed.relation.shape
(torch.Size([2, 3, 4]), torch.Size([2, 5, 5]))
"""

from typing import Literal, final, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capsroute.capsules.guards import yes_or_no
from capsroute.capsules.relations import (
    CapsuleGraph,
    Distance,
    DistanceName,
    Normalisation,
    NormalisationName,
)
from capsroute.capsules.squash import SQUASHES, SquashKind, length, squash
from capsroute.checks import one_of
from capsroute.routing.attention import AttentionAxis, AttentionScale, VoteAttention
from capsroute.routing.base import Routed, Routing, Vote, agreement, weighted_sum
from capsroute.routing.by_agreement import couplings, route_by_agreement

Aggregate = Literal["before", "after", "after_transformed"]
GraphPasses = Literal["once", "each"]
AgreementWith = Literal["votes", "aggregated"]


@final
class GraphRouting(Routing):
    """Graph routing.

    Args:
        distance, normalisation, temperature: the graph; see `capsules/relations.py`.
        attention: weigh the votes; or an object, called as (votes, mask).
        attention_axis, attention_scale: see `routing/attention.py`.
        aggregate: the graph mixes the children `before` they vote, or their votes `after`; `after_transformed`
            multiplies the mixed votes by one more learned matrix.
        graph_passes: apply the graph `once` (algorithm 1), or in `each` pass to what the pass before left (the
            paper's prose: "3 iterations: three layers").
        agreement: what is compared with the parents: the children's own `votes`, or the `aggregated` ones.
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
        distance: DistanceName | Distance = "wasserstein",
        normalisation: NormalisationName | Normalisation = "softmax",
        temperature: float | Literal["learned"] = 1.0,
        attention: bool | nn.Module = True,
        attention_axis: AttentionAxis = "children",
        attention_scale: AttentionScale = "mean_one",
        aggregate: Aggregate = "before",
        graph_passes: GraphPasses = "once",
        agreement: AgreementWith = "votes",
        squash: SquashKind = "sabour",
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        one_of("aggregate", aggregate, get_args(Aggregate))
        one_of("graph_passes", graph_passes, get_args(GraphPasses))
        one_of("agreement", agreement, get_args(AgreementWith))
        one_of("squash", squash, SQUASHES)
        self.graph = CapsuleGraph(distance, normalisation, temperature)
        if not isinstance(attention, nn.Module):
            yes_or_no("attention (unless it is a module)", attention)
        if attention is True:
            attention = VoteAttention(dim, axis=attention_axis, scale=attention_scale)
        elif (attention_axis, attention_scale) != ("children", "mean_one"):
            raise ValueError("attention_axis and attention_scale have no meaning unless attention=True.")
        self.attention = attention or None
        # The extra matrix starts as the identity: it then changes nothing until it has learned to.
        self.transform = nn.Parameter(torch.eye(dim)) if aggregate == "after_transformed" else None
        self.aggregate: Aggregate = aggregate
        self.graph_passes: GraphPasses = graph_passes
        self.agreement: AgreementWith = agreement
        self.squash: SquashKind = squash

    def initial_gain(self, children: int) -> float:
        applications = 1 if self.graph_passes == "once" else self.iterations
        weight = 1.0
        if isinstance(self.attention, VoteAttention):
            weight = self.attention.initial_weight(children, self.n_parents)
        return self.graph.norm(children, self.dim, applications) * weight / self.n_parents

    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        relation = self.graph(children, mask)
        votes, hidden, voters = self._votes_of(relation, children, vote)
        alpha = self._attend(hidden, mask)
        asked = votes if self.agreement == "votes" else hidden
        if self.graph_passes == "once":
            coupling, parents = route_by_agreement(
                asked, alpha, sent=None if asked is hidden else hidden, iterations=self.iterations, kind=self.squash
            )
        else:
            logits = votes.new_zeros(votes.shape[:3])
            coupling = couplings(logits, leak=None, dim=2)
            parents = squash(weighted_sum(coupling * alpha, hidden), self.squash)
            for _ in range(self.iterations - 1):
                logits = logits + agreement(votes if self.agreement == "votes" else hidden, parents)
                hidden, voters = self._aggregate(relation, hidden, voters, vote)
                alpha = self._attend(hidden, mask)
                coupling = couplings(logits, leak=None, dim=2)
                parents = squash(weighted_sum(coupling * alpha, hidden), self.squash)

        gain = coupling * alpha
        if self.aggregate == "after":
            # sum_i gain_ij sum_k R_ik û_kj, read as a gain of the plain votes û_kj
            applications = 1 if self.graph_passes == "once" else self.iterations
            for _ in range(applications):
                gain = relation.transpose(1, 2) @ gain
        return Routed(
            parents,
            length(parents),
            coupling * mask[:, :, None],
            None if self.aggregate == "after_transformed" else gain,
            relation,
            voters,
        )

    def _votes_of(
        self, relation: Tensor, children: Tensor, vote: Vote
    ) -> tuple[Tensor, Tensor, Float[Tensor, "batch child dim"]]:
        """The children's own votes, the mixed ones, and the capsules that voted."""
        if self.aggregate != "before":
            votes = vote(children)
            return votes, *self._aggregate(relation, votes, children, vote)
        voters = relation @ children
        try:
            votes, hidden = vote(torch.cat([children, voters])).chunk(2)  # one product: its matrices are read once
        except ValueError:  # votes made for so many documents alone; or a mistake, to be named as it was made
            votes, hidden = vote(children), vote(voters)
        return votes, hidden, voters

    def _aggregate(
        self, relation: Tensor, votes: Tensor, children: Tensor, vote: Vote
    ) -> tuple[Float[Tensor, "batch child parent dim"], Float[Tensor, "batch child dim"]]:
        """One graph convolution: the mixed votes h, and the capsules that voted."""
        if self.aggregate == "before":
            voters = relation @ children
            return vote(voters), voters
        mixed = torch.einsum("bik,bkjd->bijd", relation, votes)
        if self.transform is not None:
            mixed = mixed @ self.transform.T
        return mixed, children

    def _attend(self, hidden: Tensor, mask: Bool[Tensor, "batch child"]) -> Float[Tensor, "batch child parent"]:
        """The weight of every vote: 1 without attention, 0 for a masked child."""
        if self.attention is None:
            return mask[:, :, None].to(hidden.dtype).expand(hidden.shape[:3])
        return self.attention(hidden, mask)
