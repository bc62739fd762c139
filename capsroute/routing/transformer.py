"""No routing: the children attend to each other, then each class asks them a learned question.

Vaswani et al. 2017, Attention Is All You Need (arXiv 1706.03762), one post-norm encoder layer, as the paper's
baseline "added on top of the model to replace the routing part".

    x = LN(u + selfattention(u));   x = LN(x + W2 relu(W1 x));   v_j = squash(attention(q_j, x))

Relations: none of the routings; it has weights of its own and does not use the votes.
Departures: the paper says no more than the sentence quoted. Children are a set: there are no position embeddings.
There is one pass: `iterations` is checked and changes nothing. It has a coupling (the attention of the class to the
children, mean of the heads) but no gain: its result is not a sum of votes.
Cost: O(children^2 * dim + children * dim * (dim + wide));
parameters: 8 * dim^2 + 2 * dim * wide + 13 * dim + wide + parents * dim, which is 66 944 for dim = 64 and 4 classes.

>>> import torch
>>> TransformerRouting(children=5, parents=3, dim=8)(torch.randn(2, 5, 8), None).parents.shape
torch.Size([2, 3, 8])
"""

from math import gcd, sqrt
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capsroute.capsules.guards import whole
from capsroute.capsules.scales import pooled_rows_length
from capsroute.capsules.squash import SQUASHES, SquashKind, length, squash
from capsroute.checks import has_shape, one_of
from capsroute.routing.base import Routed, Routing, Vote


@final
class TransformerRouting(Routing):
    """A transformer in place of the routing.

    Args:
        heads: must divide dim; None: 8, or the largest common divisor of 8 and dim.
        wide: width of the feed-forward layer; None: 4 * dim.
        squash: the squash of the parents.
    """

    coupling_axis = "child"
    needs_vote = False

    def __init__(
        self,
        *,
        children: int | None,
        parents: int,
        dim: int,
        iterations: int = 3,
        heads: int | None = None,
        wide: int | None = None,
        squash: SquashKind = "sabour",
    ) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)
        one_of("squash", squash, SQUASHES)
        heads = gcd(8, dim) if heads is None else heads
        wide = 4 * dim if wide is None else wide
        whole("heads", heads, 1)
        whole("wide", wide, 1)
        if dim % heads:
            raise ValueError(f"heads={heads} must divide dim={dim}.")
        self.heads = heads
        self.squash: SquashKind = squash
        self.self_in = nn.Linear(dim, 3 * dim)
        self.self_out = nn.Linear(dim, dim)
        self.norm1 = nn.LayerNorm(dim)
        self.widen = nn.Linear(dim, wide)
        self.narrow = nn.Linear(wide, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.queries = nn.Parameter(torch.randn(parents, dim))
        self.cross_query = nn.Linear(dim, dim)
        self.cross_memory = nn.Linear(dim, 2 * dim)
        self.cross_out = nn.Linear(dim, dim)
        self._set_scales(children or 1)

    @torch.no_grad()
    def _set_scales(self, children: int) -> None:
        """Weights that keep the length of what they read; class capsules of length 1 before squash."""
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                layer.weight.normal_(std=1 / sqrt(layer.in_features))
                layer.bias.zero_()
        self.cross_out.weight.mul_(1 / pooled_rows_length(children, self.dim))

    def route(
        self,
        children: Float[Tensor, "batch child dim"],
        vote: Vote,  # noqa: ARG002 - it has weights of its own
        mask: Bool[Tensor, "batch child"],
    ) -> Routed:
        has_shape("children", children, batch=None, child=self.n_children, dim=self.dim)  # no vote brings them to dim
        # A text without children would leave its softmax empty: it attends to its zeros, and gets zeros in the end.
        there = mask | ~mask.any(dim=1, keepdim=True)
        query, key, value = self.self_in(children).chunk(3, dim=2)
        read, _ = self._attend(query, key, value, there)
        x = self.norm1(children + self.self_out(read))
        x = self.norm2(x + self.narrow(self.widen(x).relu()))
        question = self.cross_query(self.queries).expand(len(children), -1, -1)
        key, value = self.cross_memory(x).chunk(2, dim=2)
        answer, weights = self._attend(question, key, value, there)
        parents = squash(self.cross_out(answer), self.squash)
        coupling = weights.mean(dim=1).transpose(1, 2) * mask[:, :, None]
        return Routed(parents, length(parents), coupling)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Scaled dot-product attention of several heads; also the weights [batch, head, query, child]."""
        q, k, v = self._split(query), self._split(key), self._split(value)
        scores = (q @ k.transpose(2, 3) / sqrt(q.shape[3])).masked_fill(~there[:, None, None], -torch.inf)
        weights = F.softmax(scores, dim=3)
        return (weights @ v).transpose(1, 2).flatten(2), weights

    def _split(self, x: Tensor) -> Tensor:
        """[batch, item, dim] -> [batch, head, item, dim / heads]"""
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)
