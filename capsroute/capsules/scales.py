"""The scale of every weight at the start, derived in one place.

Two lengths must be right before the first step, or there is nothing to learn from: a primary capsule must sit
where squash is steep, and a class capsule where the loss has a gradient. All else follows by counting variances
of sums of independent terms, from the words up:

    words             uniform in +-WORD_RANGE              root mean square WORD_RANGE / sqrt 3
    n-gram features   He: variance 2 / (width * words)     ReLU then keeps the root mean square of the words
    primary capsules  |W g| = 1                            std 1 / (rms(g) * sqrt(features * dim))
    children          |sum_h w_h p_h| = 1                  std 1 / (|p| * sqrt(capsules read))
    votes             |sum_i gain * W_ij u_i| = 1          std 1 / (gain * relation * |u| * sqrt(children * dim))

`gain` is what a routing multiplies each vote by in its first pass (1 / parents for dynamic routing), `relation`
the length that the graph leaves of a child. An unsquashed class capsule of length 1 becomes 0.5 (sabour), 0.67
(half) or 0.63 (exponential): the middle of the range, where margin, spread and cross-entropy all pull.
"""

from math import exp, sqrt

from capsroute.capsules.squash import SquashKind

WORD_RANGE = 0.25
WORD_RMS = WORD_RANGE / sqrt(3)
CHILD_LENGTH = 1.0


def squashed_one(kind: SquashKind) -> float:
    """The length of a squashed vector of length 1: what primary capsules start with."""
    return {"sabour": 0.5, "half": 1 / 1.5, "exponential": 1 - exp(-1)}[kind]


def convolution_std(width: int, word_dim: int) -> float:
    """He et al. 2015: a ReLU layer that keeps the root mean square of what it reads."""
    return sqrt(2 / (width * word_dim))


def primary_std(features: int, dim: int, feature_rms: float) -> float:
    """Primary capsules of length 1 before squash."""
    return 1 / (feature_rms * sqrt(features * dim))


def compression_std(read: int, capsule_length: float) -> float:
    """Children of length CHILD_LENGTH, each a weighted sum of `read` capsules."""
    return CHILD_LENGTH / (capsule_length * sqrt(read))


def vote_std(children: int, dim: int, gain: float, child_length: float) -> float:
    """Votes whose sum, each multiplied by `gain`, has length 1."""
    return 1 / (gain * child_length * sqrt(children * dim))


def softmax_relation_norm(children: int, applications: int) -> float:
    """Length that (softmax(A) + I) leaves of independent children when all distances are alike.

    It doubles their mean and keeps the rest, so r applications multiply the mean by 2^r.
    """
    return sqrt(1 + (4**applications - 1) / children)


def renormalised_relation_norm(children: int, affinity: float) -> float:
    """Length that D^-1/2 (A + I) D^-1/2 leaves when all affinities of different children equal `affinity`."""
    others = children - 1
    return sqrt(4 + others * affinity**2) / (2 + others * affinity)
