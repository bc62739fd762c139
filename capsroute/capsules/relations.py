"""The graph among the children of one document: how near each is to each, made into weights.

Distances (paper, section 4.1; d_ii = 0 always)
    wasserstein   order statistics: mean_k |sort(x)_k - sort(y)_k|, the distance of the two sets of components
    euclidean     |x - y|
    cosine        1 - cos(x, y)
Normalisations (A = -distance)
    softmax       softmax(A / temperature) by rows, + I          (paper, eq. 9)
    renormalised  D^-1/2 (A' + I) D^-1/2 with A' = exp(-distance), for cosine max(cos, 0)    (the ablation)
    identity      I: "without A"
Readings and departures: docs/fidelity.md, rows 3 to 6.

>>> children = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]])
>>> distance_matrix(children, "wasserstein")[0]
tensor([[0.0000, 0.0000, 1.5000],
        [0.0000, 0.0000, 1.5000],
        [1.5000, 1.5000, 0.0000]])
>>> relation(distance_matrix(children, "euclidean")).sum(2)
tensor([[2., 2., 2.]])
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import pi, sqrt
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capsroute.capsules.differences import in_order, l1_distances
from capsroute.capsules.gates import gate
from capsroute.capsules.guards import is_a, number, yes_or_no
from capsroute.capsules.scales import renormalised_relation_norm, softmax_relation_norm
from capsroute.checks import above, has_shape, look_up, one_of

DistanceName = Literal["wasserstein", "euclidean", "cosine"]
NormalisationName = Literal["softmax", "renormalised", "identity"]
Reading = Literal["sorted", "positions", "identity"]
Reduction = Literal["mean", "sum"]
Masses = Literal["absolute", "softmax"]

Children = Float[Tensor, "batch child dim"]
Matrix = Float[Tensor, "batch child child"]
ChildMask = Bool[Tensor, "batch child"]


class Distance(ABC):
    """How far two capsules are from each other."""

    @abstractmethod
    def between(self, x: Children) -> Matrix:
        """The distance of every pair."""

    def affinity(self, distances: Matrix) -> Matrix:
        """A non-negative nearness for the renormalisation, which allows no negative entries."""
        return torch.exp(-distances)

    def typical_affinity(self, dim: int) -> float:  # noqa: ARG002 - the cosine's depends on it
        """The affinity of two unrelated children at the start, for the scales."""
        return 1.0


@dataclass(frozen=True)
class Wasserstein(Distance):
    """Wasserstein-1 distance of two capsules.

    Args:
        reading: `sorted` - the components are samples, their order means nothing (scipy's
            `wasserstein_distance(x, y)`); `positions` - the components are ordered bins that hold masses;
            `identity` - component k is moved to component k: the L1 distance.
        reduction: over the components, `mean` (what a distance of samples is) or `sum` (d times that).
        masses: how a signed component becomes a mass, for `positions`: `absolute` (|x| / sum |x|) or `softmax`.
    """

    reading: Reading = "sorted"
    reduction: Reduction = "mean"
    masses: Masses = "absolute"

    def __post_init__(self) -> None:
        one_of("reading of the Wasserstein distance", self.reading, get_args(Reading))
        one_of("reduction of the Wasserstein distance", self.reduction, get_args(Reduction))
        one_of("masses of the Wasserstein distance", self.masses, get_args(Masses))

    def between(self, x: Children) -> Matrix:
        if self.reading == "positions":
            x = self._masses(x).cumsum(dim=-1)
        total = l1_distances(in_order(x) if self.reading == "sorted" else x)
        return total / x.shape[-1] if self.reduction == "mean" else total

    def _masses(self, x: Children) -> Children:
        if self.masses == "softmax":
            return x.softmax(dim=-1)
        total = x.abs().sum(dim=-1, keepdim=True)
        # A capsule of zeros has no mass to place: it is spread evenly.
        return torch.where(total > 0, x.abs() / total.clamp_min(torch.finfo(x.dtype).tiny), 1 / x.shape[-1])


class Euclidean(Distance):
    """|x - y|."""

    def between(self, x: Children) -> Matrix:
        # The matrix-product form of cdist is faster, but gives d_ii = 1e-3 in place of 0.
        return torch.cdist(x, x, p=2.0, compute_mode="donot_use_mm_for_euclid_dist")


class Cosine(Distance):
    """1 - cos(x, y). Vectors shorter than 1e-6 have no direction: they are at distance 1 from all others."""

    def between(self, x: Children) -> Matrix:
        unit = F.normalize(x, dim=-1, eps=1e-6)
        other = 1 - torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        return (1 - unit @ unit.transpose(1, 2)) * other

    def affinity(self, distances: Matrix) -> Matrix:
        # The paper keeps the cosine as it is "due to its range being [0, 1]"; of signed vectors it may be
        # negative, and then it is taken as 0.
        return (1 - distances).clamp_min(0)

    def typical_affinity(self, dim: int) -> float:
        return 1 / sqrt(2 * pi * dim)  # mean of max(cos, 0) over random directions


DISTANCES: dict[str, Distance] = {"wasserstein": Wasserstein(), "euclidean": Euclidean(), "cosine": Cosine()}


def as_distance(kind: DistanceName | Distance) -> Distance:
    """A distance from its name; an object is returned as it is."""
    return kind if isinstance(kind, Distance) else look_up("distance", _as_name(kind), DISTANCES)


def distance_matrix(x: Children, kind: DistanceName | Distance = "wasserstein") -> Matrix:
    """The distances among the children of each document. Options are given with an object: `Wasserstein(...)`."""
    distance = as_distance(kind)
    is_a("children", x, Tensor)
    has_shape("children", x, batch=None, child=None, dim=None)
    if not x.is_floating_point():
        raise ValueError(f"children must be floating point, but have the dtype {x.dtype}.")
    if x.dtype in (torch.bfloat16, torch.float16):
        return distance.between(x.float()).to(x.dtype)  # cdist knows no half precision on a CPU
    return distance.between(x)


class Normalisation(nn.Module, ABC):
    """Distances -> the weights with which each child reads the others. Masked children read and are read nothing."""

    @abstractmethod
    def forward(self, distances: Matrix, distance: Distance, mask: ChildMask) -> Matrix:
        """The relation; `distance` is the kind that made the matrix."""

    @abstractmethod
    def norm(self, children: int, dim: int, distance: Distance, applications: int) -> float:
        """The length it leaves of a child of length 1 at the start (capsules/scales.py)."""


class SoftmaxRelation(Normalisation):
    """softmax(-distance / temperature) + I, row by row.

    Args:
        temperature: a number, or `"learned"` (starts at 1). The smaller, the fewer neighbours a child reads.
            With the mean Wasserstein distance and temperature 1 the rows are uniform to five digits: the graph
            then does nothing but add the mean of all children. `weights` and `row_entropy` show it.
        self_loop: add I.
        halve: divide by 2, so that the rows sum to 1 and not to 2.
    """

    def __init__(
        self, temperature: float | Literal["learned"] = 1.0, *, self_loop: bool = True, halve: bool = False
    ) -> None:
        super().__init__()
        if isinstance(temperature, str):
            one_of("temperature", temperature, ("learned",))
            # Its logarithm is learned: the temperature itself must stay positive.
            self.log_temperature = nn.Parameter(torch.zeros(()))
        else:
            number("temperature", temperature)
            above("temperature", temperature, 0)
        yes_or_no("self_loop", self_loop)
        yes_or_no("halve", halve)
        self.temperature: float | Literal["learned"] = temperature
        self.self_loop = self_loop
        self.halve = halve

    def weights(self, distances: Matrix, mask: ChildMask) -> Matrix:
        """softmax(A) alone: each row a probability distribution over the children that are there."""
        temperature = self.log_temperature.exp() if self.temperature == "learned" else self.temperature
        scores = -distances / temperature
        return masked_softmax(scores, mask[:, None, :], dim=2) * mask[:, :, None]

    def forward(self, distances: Matrix, distance: Distance, mask: ChildMask) -> Matrix:  # noqa: ARG002
        weights = self.weights(distances, mask)
        if self.self_loop:
            weights = weights + _identity(distances, mask)
        return weights / 2 if self.halve else weights

    def norm(self, children: int, dim: int, distance: Distance, applications: int) -> float:  # noqa: ARG002
        kept = softmax_relation_norm(children, applications) if self.self_loop else 1 / sqrt(children)
        return kept / 2**applications if self.halve else kept


class RenormalisedRelation(Normalisation):
    """D^-1/2 M D^-1/2 with M = A' + I and D the row sums of M: the trick of Kipf and Welling 2017."""

    def forward(self, distances: Matrix, distance: Distance, mask: ChildMask) -> Matrix:
        both = mask[:, :, None] & mask[:, None, :]
        nearness = distance.affinity(distances) * both + _identity(distances, mask)
        degree = nearness.sum(dim=2).clamp_min(1)  # 1 at least (a_ii + I); 0 only for a masked child
        return nearness * degree.rsqrt()[:, :, None] * degree.rsqrt()[:, None, :]

    def norm(self, children: int, dim: int, distance: Distance, applications: int) -> float:
        return renormalised_relation_norm(children, distance.typical_affinity(dim), applications)


class IdentityRelation(Normalisation):
    """I: every child reads itself alone."""

    def forward(self, distances: Matrix, distance: Distance, mask: ChildMask) -> Matrix:  # noqa: ARG002
        return _identity(distances, mask).expand_as(distances)

    def norm(self, children: int, dim: int, distance: Distance, applications: int) -> float:  # noqa: ARG002
        return 1.0


NORMALISATIONS: dict[str, type[Normalisation]] = {
    "softmax": SoftmaxRelation,
    "renormalised": RenormalisedRelation,
    "identity": IdentityRelation,
}


def as_normalisation(
    kind: NormalisationName | Normalisation, temperature: float | Literal["learned"] = 1.0
) -> Normalisation:
    """A normalisation from its name; an object is returned as it is. Only softmax has a temperature."""
    if kind == "softmax":
        return SoftmaxRelation(temperature)
    if temperature != 1.0:
        raise ValueError(
            f"temperature={temperature!r} has no meaning with normalisation {kind!r}: "
            "leave it out, use 'softmax', or give it to the object."
        )
    return kind if isinstance(kind, Normalisation) else look_up("normalisation", _as_name(kind), NORMALISATIONS)()


def relation(
    distances: Matrix,
    normalisation: NormalisationName | Normalisation = "softmax",
    *,
    distance: DistanceName | Distance = "wasserstein",
    temperature: float | Literal["learned"] = 1.0,
    mask: ChildMask | None = None,
) -> Matrix:
    """The relation from a matrix of distances; `distance` says which (`renormalised` treats the cosine apart)."""
    mask = _square("distances", distances, mask)
    return as_normalisation(normalisation, temperature)(distances, as_distance(distance), mask)


def row_entropy(
    weights: Float[Tensor, "batch child child"], mask: ChildMask | None = None
) -> Float[Tensor, "batch child"]:
    """Entropy of each row of weights that sum to 1, as a share of the largest possible.

    1: the child reads all children alike, so the graph does nothing that a mean would not do; 0: it reads one.
    """
    mask = _square("weights", weights, mask)
    entropy = -torch.xlogy(weights, weights).sum(dim=2)
    largest = mask.sum(dim=1, keepdim=True).to(weights.dtype).log()
    # One child alone: 0 / 0, and its one weight is as even as can be.
    return torch.where(largest > 0, entropy / largest.clamp_min(1e-12), 1.0) * mask


class CapsuleGraph(nn.Module):
    """children -> relation: a distance and a normalisation together, as graph routing and gcn use them."""

    def __init__(
        self,
        distance: DistanceName | Distance,
        normalisation: NormalisationName | Normalisation,
        temperature: float | Literal["learned"],
    ) -> None:
        super().__init__()
        self.distance = as_distance(distance)
        self.normalisation = as_normalisation(normalisation, temperature)

    def forward(self, children: Children, mask: ChildMask) -> Matrix:
        if isinstance(self.normalisation, IdentityRelation):  # no distance is looked at, so none is measured
            return _identity(children, mask).expand(-1, -1, children.shape[1])
        return gate(self.normalisation(distance_matrix(children, self.distance), self.distance, mask))

    def entropy(self, children: Children, mask: ChildMask | None = None) -> Float[Tensor, "batch child"]:
        """`row_entropy` of softmax(A) for these children: is the graph doing anything?"""
        if not isinstance(self.normalisation, SoftmaxRelation):
            raise ValueError(
                "row entropy is defined for the softmax normalisation, whose rows are probabilities; "
                f"this graph uses {type(self.normalisation).__name__}."
            )
        mask = children.new_ones(children.shape[:2], dtype=torch.bool) if mask is None else mask
        return row_entropy(self.normalisation.weights(distance_matrix(children, self.distance), mask), mask)

    def norm(self, children: int, dim: int, applications: int = 1) -> float:
        """The length it leaves of a child at the start (capsules/scales.py)."""
        return self.normalisation.norm(children, dim, self.distance, applications)


def masked_softmax(scores: Tensor, mask: Tensor, dim: int) -> Tensor:
    """Softmax over the entries that are there; zeros, not NaN, where none is."""
    # The lowest finite number, not -inf: a row without any entry then has a gradient of zero, not NaN.
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=dim) * mask


def _as_name(kind: object) -> str:
    """Only words are looked up in a table; whatever else comes is shown in the refusal."""
    return kind if isinstance(kind, str) else repr(kind)


def _square(what: str, matrix: Tensor, mask: Tensor | None) -> ChildMask:
    """Refuse what is no matrix of child by child; the mask, all there unless given."""
    is_a(what, matrix, Tensor)
    has_shape(what, matrix, batch=None, child=None, other=matrix.shape[1] if matrix.ndim > 1 else None)
    if mask is None:
        return matrix.new_ones(matrix.shape[:2], dtype=torch.bool)
    is_a("mask", mask, Tensor)
    has_shape("mask", mask, batch=matrix.shape[0], child=matrix.shape[1])
    return mask


def _identity(like: Tensor, mask: ChildMask) -> Matrix:
    return torch.diag_embed(mask.to(like.dtype))
