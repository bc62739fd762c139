"""The scale of every weight at the start, derived in one place.

Two lengths must be right before the first step, or there is nothing to learn from: a primary capsule must sit
where squash is steep, and a class capsule where the loss has a gradient. All else follows by counting variances
of sums of independent terms, from the words up:

    words             uniform in +-WORD_RANGE              root mean square WORD_RANGE / sqrt 3
    n-gram features   He: variance 2 / (width * words)     ReLU then keeps the root mean square of the words
    primary capsules  |W g| = 1                            std 1 / (rms(g) * sqrt(features * dim))
    pooled features   as long as an n-gram's               the largest of P, divided by `largest_rms(P)`
    children          |sum_h w_h p_h| = 1                  std 1 / (|p| * sqrt(capsules read))
    votes             |sum_i gain * W_ij u_i| = r          std |vote| / (|u| * sqrt(dim))
                                                           |vote| = r / (gain * sqrt(children) * pull)

`gain` is what a routing multiplies each vote by in its first pass (1 / parents for dynamic routing) times the length
that a graph leaves of a child. `pull` is how much longer the sum of the children is than one of unrelated vectors.
An unsquashed class capsule of length r = 1 becomes 0.5 (sabour), 0.67 (half) or 0.63 (exponential): the middle of
the range, where margin, spread and cross-entropy all pull. With many parents r is less: see `class_length`.
"""

from math import erfc, exp, log, pi, sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor

from capsroute.capsules.squash import SquashKind

WORD_RANGE = 0.25
WORD_RMS = WORD_RANGE / sqrt(3)
CHILD_LENGTH = 1.0
RELU_COHERENCE = 1 / pi
"""Share of the mean square of relu(normal) that is the square of its mean: what all positions have in common."""


def squashed_one(kind: SquashKind) -> float:
    """The length of a squashed vector of length 1: what primary capsules start with."""
    return {"sabour": 0.5, "half": 1 / 1.5, "exponential": 1 - exp(-1)}[kind]


def convolution_std(width: int, word_dim: int) -> float:
    """He et al. 2015: a ReLU layer that keeps the root mean square of what it reads."""
    return sqrt(2 / (width * word_dim))


_STEP = 1 / 8
_PLACES = tuple(_STEP * k for k in range(1, 65))  # up to 8 deviations, which no maximum of a text passes
_LOG_CDF = tuple(log(erfc(-x / sqrt(2)) / 2) for x in _PLACES)


def largest_rms(positions: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Root mean square of the largest of P n-gram features, as a multiple of that of one; 1 for P = 1.

    A feature is relu(z) with z normal, of mean square 1/2. P of them stay under x with probability Phi(x)^P, so the
    mean square of the largest is the integral of 2x (1 - Phi(x)^P) over x > 0: 3.3 times as long for 60 positions.
    """
    place = torch.tensor(_PLACES, device=positions.device)
    under = (positions.clamp_min(1)[..., None] * torch.tensor(_LOG_CDF, device=positions.device)).exp()
    return (2 * (2 * place * (1 - under)).sum(dim=-1) * _STEP).sqrt()


def primary_std(features: int, dim: int, feature_rms: float) -> float:
    """Primary capsules of length 1 before squash."""
    return 1 / (feature_rms * sqrt(features * dim))


def compression_std(read: int, capsule_length: float) -> float:
    """Children of length CHILD_LENGTH, each a weighted sum of `read` capsules."""
    return CHILD_LENGTH / (capsule_length * sqrt(read))


def class_length(children: int, spread: int, gain: float) -> float:
    """Length r of an unsquashed class capsule: 1, or less where that would take votes too long.

    A parent that gets little of each child (1 / parents) needs long votes, and long votes agree so strongly that the
    first passes already give everything to a few parents and leave the others at length 0. The agreements of a
    child, |vote| |v| cos with |v| about r^2 and cos about 1 / sqrt(spread), are kept within a quarter of each other.
    """
    return min(1.0, (0.25 * gain * sqrt(children * spread)) ** (1 / 3))


def vote_length(children: int, spread: int, gain: float, pull: float = 1.0) -> float:
    """|vote| at the start; `spread` is the number of dimensions that the votes of one child lie in."""
    return class_length(children, spread, gain) / (gain * sqrt(children) * pull)


def pull_of_positions(positions: int, coherence: float) -> float:
    """How much longer the sum of a capsule over all positions is than one of unrelated vectors."""
    return sqrt(1 + (positions - 1) * coherence)


def coherence_of_windows(width: int, coherence: float) -> float:
    """What the sums over windows of `width` positions have in common, from what the positions have."""
    return width * coherence / (1 + (width - 1) * coherence)


def pooled_rows_length(rows: int, dim: int) -> float:
    """Length of the mean of layer-normalised rows behind a feed-forward layer.

    Two thirds of such a row came past the layer and one third through its ReLU, which leaves RELU_COHERENCE of it
    common to all rows.
    """
    common = RELU_COHERENCE / 3
    return sqrt(dim * (common + (1 - common) / rows))


def softmax_relation_norm(children: int, applications: int) -> float:
    """Length that (softmax(A) + I) leaves of independent children when all distances are alike.

    It doubles their mean and keeps the rest, so r applications multiply the mean by 2^r.
    """
    return sqrt(1 + (4**applications - 1) / children)


def renormalised_relation_norm(children: int, affinity: float, applications: int) -> float:
    """Length that D^-1/2 (A + I) D^-1/2 leaves when all affinities of different children equal `affinity`.

    It keeps their mean and shrinks what they differ by, each time alike.
    """
    kept = (2 - affinity) / (2 + (children - 1) * affinity)
    return sqrt((1 + (children - 1) * kept ** (2 * applications)) / children)
