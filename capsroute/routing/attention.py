"""Which votes matter: a small network scores every vote, and a softmax makes the scores weights.

    m_ij = w . tanh(V h_ij + b);   alpha = softmax(m), times the number of entries it runs over

Bahdanau et al. 2014, as the paper's section 4.3 has it. Over the children of each parent by default; multiplied by
their number, so that the mean weight is 1: without that, class capsules start at length 0.001, where the margin
loss has no gradient (docs/fidelity.md, row 11).
Parameters: dim * (dim + 2).
"""

from math import sqrt
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capsroute.capsules.relations import masked_softmax
from capsroute.checks import one_of

AttentionAxis = Literal["children", "parents", "both"]
AttentionScale = Literal["mean_one", "none"]


class VoteAttention(nn.Module):
    """Votes -> their weights.

    Args:
        axis: the softmax runs over the `children` of each parent, the `parents` of each child, or `both`.
        scale: `mean_one` multiplies by the number of entries of the softmax, `none` does not.
    """

    def __init__(self, dim: int, *, axis: AttentionAxis = "children", scale: AttentionScale = "mean_one") -> None:
        super().__init__()
        one_of("attention_axis", axis, get_args(AttentionAxis))
        one_of("attention_scale", scale, get_args(AttentionScale))
        self.axis: AttentionAxis = axis
        self.scale: AttentionScale = scale
        self.weight = nn.Parameter(torch.randn(dim, dim) / sqrt(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        # At zero all votes weigh the same, and long votes (many parents) cannot make a few win before training.
        self.score = nn.Parameter(torch.zeros(dim))

    def forward(
        self, votes: Float[Tensor, "batch child parent dim"], mask: Bool[Tensor, "batch child"]
    ) -> Float[Tensor, "batch child parent"]:
        # Votes lie in memory parent by parent (capsules/unshared.py): read so, they need no copy.
        hidden = torch.tanh(F.linear(votes.transpose(1, 2), self.weight, self.bias))
        scores = (hidden @ self.score).transpose(1, 2)
        there = mask[:, :, None].expand_as(scores)
        if self.axis == "children":
            weights, count = masked_softmax(scores, there, dim=1), mask.sum(dim=1)[:, None, None]
        elif self.axis == "parents":
            weights, count = scores.softmax(dim=2) * there, scores.shape[2]
        else:
            flat = masked_softmax(scores.flatten(1), there.flatten(1), dim=1)
            weights, count = flat.view_as(scores), mask.sum(dim=1)[:, None, None] * scores.shape[2]
        return weights * count if self.scale == "mean_one" else weights

    def initial_weight(self, children: int, parents: int) -> float:
        """The mean weight, for the scales at the start."""
        if self.scale == "mean_one":
            return 1.0
        return {"children": 1 / children, "parents": 1 / parents, "both": 1 / (children * parents)}[self.axis]
