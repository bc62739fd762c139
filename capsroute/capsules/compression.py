"""Compression: the thousands of primary capsules of a text -> a few children.

    positional   u_n = sum_{t,k} w_{t mod P, k, n} p_tk            weights by position and kind (Zhao 2019, the paper)
    attended     u_n = sum_t a_nt sum_k w_nk p_tk                  a_nt = softmax_t(q_n . g_t / sqrt(features))
    pooled       u_n = sum_k w_nk p_k                              p from max_t g_t / largest_rms(positions)
    none         every primary capsule is a child                  needs shared votes

`positional` binds what it learns to a place: a word must be learned anew at each of the P places, and a text longer
than P positions starts over with the first weights (the last ones, repeated, would add up in step and drown the
rest). `attended` and `pooled` do not know the place. The maximum grows with the number of positions, which says
nothing about the text: `pooled` divides by how much (capsules/scales.py), so that squash stays steep in texts of any
length. No weight is applied where there is no position, so padding changes nothing. A text without any token has no
children.

Parameters: P K n; n (features + K); n K; none.

>>> from capsroute.capsules.primary import PrimaryCapsules
>>> compression = make_compression("attended", children=4, positions=9, kinds=3, features=6)
>>> children, mask = compression(torch.randn(2, 5, 6), torch.ones(2, 5, dtype=torch.bool), PrimaryCapsules(
...     features=6, kinds=3, dim=8))
>>> children.shape
torch.Size([2, 4, 8])
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import sqrt
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capsroute.capsules.fused import primary_to_children
from capsroute.capsules.gates import closed_forms, gate
from capsroute.capsules.guards import number, whole
from capsroute.capsules.primary import Capsules, PrimaryCapsules
from capsroute.capsules.relations import masked_softmax
from capsroute.capsules.scales import (
    CHILD_LENGTH,
    RELU_COHERENCE,
    compression_std,
    largest_rms,
    pull_of_positions,
    squashed_one,
)
from capsroute.checks import above, one_of

CompressionName = Literal["positional", "attended", "pooled", "none"]
FeatureValues = Float[Tensor, "batch position feature"]
PositionMask = Bool[Tensor, "batch position"]
Primary = Callable[[Tensor, Tensor], Capsules]


class Children(NamedTuple):
    """The capsules that are routed, and which of them are there."""

    values: Float[Tensor, "batch child dim"]
    mask: Bool[Tensor, "batch child"]


class Compression(nn.Module, ABC):
    """Features and a primary layer -> children. It calls the layer itself, on what it wants read."""

    initial_length = CHILD_LENGTH  # of a child at the start
    nominal_children: int  # how many to plan for; without compression a text of another length has others
    pull = 1.0  # how much longer their sum is than one of unrelated vectors

    @abstractmethod
    def forward(self, features: FeatureValues, mask: PositionMask, primary: Primary) -> Children: ...


class PositionalCompression(Compression):
    """Weights by position and kind."""

    def __init__(self, *, children: int, positions: int, kinds: int, capsule_length: float) -> None:
        super().__init__()
        self.nominal_children = children
        std = compression_std(positions * kinds, capsule_length)
        self.weight = nn.Parameter(torch.randn(positions, kinds, children) * std)

    def forward(self, features: FeatureValues, mask: PositionMask, primary: Primary) -> Children:
        # In one walk where that can be; what stands between, as convolutional capsules do, is called.
        if isinstance(primary, PrimaryCapsules) and features.device.type == "cpu" and closed_forms(features):
            primary.check(features)
            weight = self._weight(features.shape[1])
            children = primary_to_children(features, mask, primary.weight, primary.bias, weight, primary.squash)
        else:
            capsules, mask = primary(features, mask)
            # (position, kind) are one axis here: h of the formula
            children = self._weight(capsules.shape[1]).flatten(0, 1).T @ capsules.flatten(1, 2)
        return Children(children, _there(mask, children.shape[1]))

    def _weight(self, positions: int) -> Float[Tensor, "position kind child"]:
        """The weights of so many positions; past the last one they start over."""
        longest = self.weight.shape[0]
        if positions <= longest:
            return self.weight[:positions]
        return self.weight[torch.arange(positions, device=self.weight.device) % longest]


class AttendedCompression(Compression):
    """Each child is a learned query that attends over positions."""

    def __init__(self, *, children: int, kinds: int, features: int, capsule_length: float) -> None:
        super().__init__()
        self.nominal_children = children
        self.queries = nn.Parameter(torch.randn(children, features))
        self.mix = nn.Parameter(torch.randn(children, kinds) * compression_std(kinds, capsule_length))

    def forward(self, features: FeatureValues, mask: PositionMask, primary: Primary) -> Children:
        scores = self.queries @ features.transpose(1, 2) / sqrt(features.shape[2])
        capsules, there = primary(features, mask)
        attention = gate(masked_softmax(scores, mask[:, None, :], dim=2))
        # n child, t position, k kind, d dimension
        read = torch.einsum("bnt,btkd->bnkd", attention, capsules)
        children = torch.einsum("bnkd,nk->bnd", read, self.mix)
        return Children(children, _there(there, children.shape[1]))


class PooledCompression(Compression):
    """Each child reads the capsules of one position: the maximum of every feature over the text."""

    def __init__(self, *, children: int, kinds: int, capsule_length: float) -> None:
        super().__init__()
        self.nominal_children = children
        self.mix = nn.Parameter(torch.randn(children, kinds) * compression_std(kinds, capsule_length))

    def forward(self, features: FeatureValues, mask: PositionMask, primary: Primary) -> Children:
        lowest = torch.finfo(features.dtype).min
        pooled = features.masked_fill(~mask[:, :, None], lowest).amax(dim=1, keepdim=True)
        pooled = pooled / largest_rms(mask.sum(dim=1))[:, None, None].to(pooled.dtype)
        some = mask.any(dim=1, keepdim=True)
        capsules, there = primary(pooled.masked_fill(~some[:, :, None], 0), some)
        children = self.mix @ capsules.squeeze(1)
        return Children(children, _there(there, children.shape[1]))


class NoCompression(Compression):
    """Every capsule is a child, masked where its position is."""

    def __init__(self, *, positions: int, kinds: int, capsule_length: float, coherence: float) -> None:
        super().__init__()
        self.nominal_children = positions * kinds
        self.initial_length = capsule_length
        self.pull = pull_of_positions(positions, coherence)

    def forward(self, features: FeatureValues, mask: PositionMask, primary: Primary) -> Children:
        capsules, mask = primary(features, mask)
        kinds = capsules.shape[2]
        return Children(capsules.flatten(1, 2), mask.repeat_interleave(kinds, dim=1))


def make_compression(
    kind: CompressionName,
    *,
    children: int | None,
    positions: int,
    kinds: int,
    features: int,
    capsule_length: float = squashed_one("sabour"),
    coherence: float = RELU_COHERENCE,
) -> Compression:
    """Compression by name, from the sizes of the network around it.

    Args:
        children: how many to make; None for "none" alone.
        capsule_length, coherence: of the capsules at the start, from the layer that makes them.
    """
    one_of("compression", kind, get_args(CompressionName))
    whole("positions", positions, 1)
    whole("kinds", kinds, 1)
    whole("features", features, 1)
    number("capsule_length", capsule_length)
    above("capsule_length", capsule_length, 0)
    if (kind == "none") != (children is None):
        raise ValueError(
            f"children={children} does not go with compression '{kind}': 'none' keeps all capsules and takes "
            "children=None, every other makes a number of them."
        )
    if children is None:
        return NoCompression(positions=positions, kinds=kinds, capsule_length=capsule_length, coherence=coherence)
    whole("children", children, 1)
    if kind == "positional":
        return PositionalCompression(
            children=children, positions=positions, kinds=kinds, capsule_length=capsule_length
        )
    if kind == "attended":
        return AttendedCompression(children=children, kinds=kinds, features=features, capsule_length=capsule_length)
    return PooledCompression(children=children, kinds=kinds, capsule_length=capsule_length)


def _there(mask: PositionMask, children: int) -> Bool[Tensor, "batch child"]:
    """All children of a text that has a position; none of a text that has not."""
    return mask.any(dim=1, keepdim=True).expand(-1, children)
