"""Slow float64 reference of the routing methods: one document, explicit loops, NumPy only.

Axes: i, k = children (N of them), j = parents (C), h, o = components (d), t = positions (T) or passes.
Every function follows its formula term by term, so that a fast implementation can be compared with it.
`alive` marks the real children. Loops visit only those: a masked child cannot contribute, not even by a NaN.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Alive: TypeAlias = Sequence[bool] | NDArray[np.bool_]
Vote: TypeAlias = Callable[[Array], Array]
Target: TypeAlias = int | NDArray[np.float64] | NDArray[np.int64] | Sequence[int]

SquashKind: TypeAlias = Literal["sabour", "half", "exponential"]
Reduction: TypeAlias = Literal["mean", "sum"]
Masses: TypeAlias = Literal["absolute", "softmax"]
Distance: TypeAlias = Literal["wasserstein_sorted", "wasserstein_positions", "l1", "euclidean", "cosine"]
Axis: TypeAlias = Literal["children", "parents", "both"]
Scale: TypeAlias = Literal["mean_one", "none"]


@dataclass(frozen=True)
class Reference:
    """What every routing returns; None where the method does not define the quantity."""

    parents: Array  # [C, d]
    activation: Array  # [C]
    coupling: Array | None = None  # [N, C] share of child i given to parent j
    gain: Array | None = None  # [N, C] what multiplied the vote in the sum
    relation: Array | None = None  # [N, N] graph methods only
    passes: int | None = None  # adaptive routing only


@dataclass(frozen=True)
class AttentionParameters:
    """Arguments of `attention` for use inside `graph`: V [d, d], bias [d], w [d]."""

    V: Array
    bias: Array
    w: Array
    axis: Axis = "children"
    scale: Scale = "mean_one"


# ----------------------------------------------------------------------------------------------- small pieces


def living(alive: Alive) -> list[int]:
    """Indices i with alive_i true."""
    return [i for i in range(len(alive)) if alive[i]]


def keep_rows(x: Array, alive: Alive) -> Array:
    """y_i = x_i for alive i, else 0."""
    result = np.zeros(x.shape)
    for i in living(alive):
        result[i] = x[i]
    return result


def keep_pairs(x: Array, alive: Alive) -> Array:
    """y_ik = x_ik for alive i and alive k, else 0."""
    result = np.zeros(x.shape)
    for i in living(alive):
        for k in living(alive):
            result[i, k] = x[i, k]
    return result


def length(x: Array) -> float:
    """|x| = sqrt(sum_h x_h^2)."""
    return math.hypot(*(float(component) for component in x))


def lengths(v: Array) -> Array:
    """a_j = |v_j|."""
    return np.array([length(v[j]) for j in range(v.shape[0])])


def softmax(x: Array) -> Array:
    """p_k = exp(x_k) / sum_l exp(x_l)."""
    # Shifting by the maximum leaves the ratio as it is and keeps exp from overflowing.
    powers = np.exp(x - np.max(x))
    return powers / np.sum(powers)


def log_sigmoid(x: float) -> float:
    """log(1 / (1 + exp(-x)))."""
    return -float(np.logaddexp(0.0, -x))


def squash(x: Array, kind: SquashKind = "sabour") -> Array:
    """With r = |x|: x r/(1 + r^2), or x r/(0.5 + r^2), or x (1 - exp(-r))/r; zero stays zero."""
    r = length(x)
    if r == 0.0:
        return np.zeros(x.shape)
    if kind == "sabour":
        return x * (r / (1.0 + r * r))
    if kind == "half":
        return x * (r / (0.5 + r * r))
    if kind == "exponential":
        # expm1 is the same number without cancellation at small r.
        return x * (-math.expm1(-r) / r)
    raise ValueError(f"unknown squash kind {kind!r}")


def squash_rows(s: Array, kind: SquashKind) -> Array:
    """v_j = squash(s_j)."""
    result = np.zeros(s.shape)
    for j in range(s.shape[0]):
        result[j] = squash(s[j], kind)
    return result


def zero_pairs(votes: Array) -> Array:
    """x_ij = 0 for every child i and parent j."""
    return np.zeros(votes.shape[:2])


def weighted_sum(gain: Array, votes: Array, alive: Alive) -> Array:
    """s_j = sum_i g_ij V_ij over alive i."""
    parents, dim = votes.shape[1:]
    result = np.zeros((parents, dim))
    for j in range(parents):
        for i in living(alive):
            result[j] += gain[i, j] * votes[i, j]
    return result


def softmax_over_parents(logits: Array, alive: Alive) -> Array:
    """c_ij = exp(b_ij) / sum_k exp(b_ik) for alive i."""
    result = np.zeros(logits.shape)
    for i in living(alive):
        result[i] = softmax(logits[i])
    return result


def nothing(children: int, parents: int, dim: int, with_gain: bool = True, with_relation: bool = False) -> Reference:
    """v = 0, a = 0, c = 0: the answer when no child is alive."""
    return Reference(
        parents=np.zeros((parents, dim)),
        activation=np.zeros(parents),
        coupling=np.zeros((children, parents)),
        gain=np.zeros((children, parents)) if with_gain else None,
        relation=np.zeros((children, children)) if with_relation else None,
    )


# ------------------------------------------------------------------------------------------------------ votes


def unshared_votes(u: Array, W: Array, b: Array) -> Array:
    """V_ij = W_ij u_i + b_ij with W [N, C, d_out, d_in], b [N, C, d_out]."""
    votes = np.zeros(b.shape)
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            votes[i, j] = W[i, j] @ u[i] + b[i, j]
    return votes


def shared_votes(u: Array, W: Array, b: Array) -> Array:
    """V_ij = W_j u_i + b_j with W [C, d_out, d_in], b [C, d_out]."""
    votes = np.zeros((u.shape[0], W.shape[0], W.shape[1]))
    for i in range(u.shape[0]):
        for j in range(W.shape[0]):
            votes[i, j] = W[j] @ u[i] + b[j]
    return votes


def low_rank_votes(u: Array, down: Array, up: Array, b: Array) -> Array:
    """V_ij = up_j (down_i u_i) + b_j with down [N, r, d], up [C, d, r], b [C, d]."""
    votes = np.zeros((u.shape[0], up.shape[0], up.shape[1]))
    for i in range(u.shape[0]):
        for j in range(up.shape[0]):
            votes[i, j] = up[j] @ (down[i] @ u[i]) + b[j]
    return votes


# -------------------------------------------------------------------------------------------------- distances


def reduce_terms(terms: Sequence[float], reduction: Reduction) -> float:
    """sum_h x_h, or (1/d) sum_h x_h."""
    if reduction == "sum":
        return float(sum(terms))
    if reduction == "mean":
        return float(sum(terms)) / len(terms)
    raise ValueError(f"unknown reduction {reduction!r}")


def wasserstein_sorted(x: Array, y: Array, reduction: Reduction = "mean") -> float:
    """W = reduce_k |x_(k) - y_(k)| over order statistics: each vector is a sample of d numbers."""
    first, second = sorted(float(value) for value in x), sorted(float(value) for value in y)
    return reduce_terms([abs(a - b) for a, b in zip(first, second, strict=True)], reduction)


def bin_masses(x: Array, masses: Masses) -> Array:
    """m_k = |x_k| / sum_l |x_l| (uniform for the zero vector), or softmax(x)_k."""
    if masses == "softmax":
        return softmax(x)
    if masses == "absolute":
        total = float(np.sum(np.abs(x)))
        return np.full(x.shape, 1.0 / len(x)) if total == 0.0 else np.abs(x) / total
    raise ValueError(f"unknown masses {masses!r}")


def wasserstein_positions(x: Array, y: Array, reduction: Reduction = "mean", masses: Masses = "absolute") -> float:
    """W = reduce_k |CDF_x(k) - CDF_y(k)|: the components are d ordered bins one step apart."""
    mass_x, mass_y = bin_masses(x, masses), bin_masses(y, masses)
    terms: list[float] = []
    cdf_x, cdf_y = 0.0, 0.0
    for k in range(len(x)):
        cdf_x += float(mass_x[k])
        cdf_y += float(mass_y[k])
        terms.append(abs(cdf_x - cdf_y))
    return reduce_terms(terms, reduction)


def l1(x: Array, y: Array, reduction: Reduction = "mean") -> float:
    """D = reduce_h |x_h - y_h|: component h is matched with component h."""
    return reduce_terms([abs(float(a) - float(b)) for a, b in zip(x, y, strict=True)], reduction)


def euclidean(x: Array, y: Array) -> float:
    """D = |x - y|."""
    return length(x - y)


def cosine(x: Array, y: Array) -> float:
    """D = 1 - x.y / (max(|x|, 1e-6) max(|y|, 1e-6))."""
    return 1.0 - float((x / max(length(x), 1e-6)) @ (y / max(length(y), 1e-6)))


def distance(x: Array, y: Array, name: Distance, reduction: Reduction, masses: Masses) -> float:
    """D = the distance called `name` between x and y."""
    if name == "wasserstein_sorted":
        return wasserstein_sorted(x, y, reduction)
    if name == "wasserstein_positions":
        return wasserstein_positions(x, y, reduction, masses)
    if name == "l1":
        return l1(x, y, reduction)
    if name == "euclidean":
        return euclidean(x, y)
    if name == "cosine":
        return cosine(x, y)
    raise ValueError(f"unknown distance {name!r}")


def distance_matrix(u: Array, name: Distance, reduction: Reduction = "mean", masses: Masses = "absolute") -> Array:
    """D_ik = distance(u_i, u_k), D_ii = 0 by definition."""
    children = u.shape[0]
    result = np.zeros((children, children))
    for i in range(children):
        for k in range(children):
            # The clamped cosine of a (nearly) zero vector with itself is not 0, hence "by definition".
            if i != k:
                result[i, k] = distance(u[i], u[k], name, reduction, masses)
    return result


# -------------------------------------------------------------------------------------------------- relations


def softmax_relation(
    D: Array, alive: Alive, temperature: float = 1.0, self_loop: bool = True, halve: bool = False
) -> Array:
    """R = (softmax_k(-D_ik / temperature) + I) / 2, with I and the division by 2 optional."""
    children = living(alive)
    result = np.zeros(D.shape)
    for i in children:
        row = softmax(np.array([-D[i, k] / temperature for k in children]))
        for place, k in enumerate(children):
            result[i, k] = row[place]
        if self_loop:
            result[i, i] += 1.0
        if halve:
            result[i] /= 2.0
    return result


def affinity(D: Array, distance_name: Distance) -> Array:
    """A_ik = exp(-D_ik), or max(1 - D_ik, 0) for cosine."""
    result = np.zeros(D.shape)
    for i in range(D.shape[0]):
        for k in range(D.shape[1]):
            result[i, k] = max(1.0 - D[i, k], 0.0) if distance_name == "cosine" else math.exp(-D[i, k])
    return result


def renormalised_relation(A: Array, alive: Alive) -> Array:
    """R_ik = M_ik / sqrt(deg_i deg_k) with M = A + I, deg_i = sum_k M_ik over alive k."""
    children = living(alive)
    degree = {i: sum(float(A[i, k]) for k in children) + 1.0 for i in children}
    result = np.zeros(A.shape)
    for i in children:
        for k in children:
            entry = A[i, k] + (1.0 if i == k else 0.0)
            result[i, k] = entry / math.sqrt(degree[i] * degree[k])
    return result


def identity_relation(alive: Alive) -> Array:
    """R_ii = 1 for alive i, 0 elsewhere."""
    result = np.zeros((len(alive), len(alive)))
    for i in living(alive):
        result[i, i] = 1.0
    return result


def apply_relation(relation: Array, x: Array, alive: Alive) -> Array:
    """y_i = sum_k R_ik x_k over alive k, for alive i; x is [N, d] or [N, C, d]."""
    result = np.zeros(x.shape)
    for i in living(alive):
        for k in living(alive):
            result[i] += relation[i, k] * x[k]
    return result


def row_entropy(weights: Array, alive: Alive) -> Array:
    """H_i = -sum_k p_ik log p_ik / log n over the n alive k; 1 when n = 1, 0 for masked i."""
    children = living(alive)
    result = np.zeros(weights.shape[0])
    for i in children:
        # The limit of p log p at p = 0 is 0.
        entropy = -sum(float(weights[i, k]) * math.log(weights[i, k]) for k in children if weights[i, k] > 0)
        result[i] = 1.0 if len(children) == 1 else entropy / math.log(len(children))
    return result


# ---------------------------------------------------------------------------------- dynamic and leaky routing


def route_by_agreement(
    u: Array,
    votes: Array,
    alive: Alive,
    passes: int,
    squash_kind: SquashKind,
    amend: bool,
    leak: float | None,
) -> Reference:
    """c = softmax(b); s_j = sum_i g_ij V_ij; v = squash(s); b_ij += V_ij . v_j, not at the end."""
    if not living(alive):
        return nothing(*votes.shape)
    logits, coupling, gain = zero_pairs(votes), zero_pairs(votes), zero_pairs(votes)
    parents = np.zeros(votes.shape[1:])
    for t in range(1, passes + 1):
        for i in living(alive):
            if leak is None:
                coupling[i] = softmax(logits[i])
            else:
                # The leak is one more parent; its share is computed and thrown away.
                coupling[i] = softmax(np.append(logits[i], leak))[:-1]
            gain[i] = coupling[i] * (length(u[i]) if amend else 1.0)
        parents = squash_rows(weighted_sum(gain, votes, alive), squash_kind)
        if t < passes:
            add_agreement(logits, votes, parents, alive)
    return Reference(parents, lengths(parents), coupling, gain)


def add_agreement(logits: Array, votes: Array, parents: Array, alive: Alive) -> None:
    """b_ij += V_ij . v_j in place, for alive i."""
    for i in living(alive):
        for j in range(parents.shape[0]):
            logits[i, j] += float(votes[i, j] @ parents[j])


def dynamic(
    u: Array, votes: Array, alive: Alive, passes: int, squash_kind: SquashKind = "sabour", amend: bool = False
) -> Reference:
    """c_ij = exp(b_ij) / sum_k exp(b_ik); gain = c, or |u_i| c_ij with amendment."""
    return route_by_agreement(u, votes, alive, passes, squash_kind, amend, leak=None)


def leaky(
    u: Array,
    votes: Array,
    alive: Alive,
    passes: int,
    squash_kind: SquashKind = "sabour",
    leak: float = 0.0,
    amend: bool = False,
) -> Reference:
    """c_ij = exp(b_ij) / (exp(leak) + sum_k exp(b_ik)); otherwise as `dynamic`."""
    return route_by_agreement(u, votes, alive, passes, squash_kind, amend, leak=leak)


# ------------------------------------------------------------------------------------------------- EM routing


@dataclass(frozen=True)
class Gaussians:
    """State after one M step: a_j = sigmoid(score_j), mean mu_j, variance sigma2_j, gain R'_ij / R_j."""

    mean: Array  # [C, d]
    variance: Array  # [C, d]
    score: Array  # [C]
    gain: Array  # [N, C]


def m_step(
    share: Array,
    u: Array,
    votes: Array,
    alive: Alive,
    inverse_temperature: float,
    beta_use: Array,
    beta_activate: Array,
) -> Gaussians:
    """mu, sigma2 = R'-weighted moments; score_j = lambda (beta_a - sum_h (beta_u + log sigma_jh) R_j)."""
    count, dim = votes.shape[1:]
    mean, variance = np.zeros((count, dim)), np.zeros((count, dim))
    score, gain = np.zeros(count), zero_pairs(votes)
    for j in range(count):
        weight = {i: float(share[i, j]) * length(u[i]) for i in living(alive)}
        total = sum(weight.values())
        divisor = max(total, 1e-8)
        for i in living(alive):
            gain[i, j] = weight[i] / divisor
            mean[j] += weight[i] * votes[i, j]
        mean[j] /= divisor
        for i in living(alive):
            variance[j] += weight[i] * (votes[i, j] - mean[j]) ** 2
        variance[j] = variance[j] / divisor + 1e-8
        cost = sum((float(beta_use[j]) + 0.5 * math.log(variance[j, h])) * total for h in range(dim))
        score[j] = inverse_temperature * (float(beta_activate[j]) - cost)
    return Gaussians(mean, variance, score, gain)


def e_step(state: Gaussians, votes: Array, alive: Alive, evidence: Reduction) -> Array:
    """R_ij = a_j p_ij / sum_k a_k p_ik, log p_ij = reduce_h log Normal(V_ijh; mu_jh, sigma2_jh)."""
    children, count, dim = votes.shape
    share = np.zeros((children, count))
    for i in living(alive):
        logits = np.zeros(count)
        for j in range(count):
            terms = [
                log_normal(float(votes[i, j, h]), float(state.mean[j, h]), float(state.variance[j, h]))
                for h in range(dim)
            ]
            logits[j] = log_sigmoid(float(state.score[j])) + reduce_terms(terms, evidence)
        share[i] = softmax(logits)
    return share


def log_normal(x: float, mean: float, variance: float) -> float:
    """log Normal(x; mean, variance) = -(x - mean)^2 / (2 variance) - 0.5 log(2 pi variance)."""
    return -((x - mean) ** 2) / (2.0 * variance) - 0.5 * math.log(2.0 * math.pi * variance)


def em(
    u: Array,
    votes: Array,
    alive: Alive,
    passes: int,
    inverse_temperature: float,
    beta_use: Array,
    beta_activate: Array,
    evidence: Reduction = "sum",
) -> Reference:
    """R_ij = 1/C; then M step, E step, ..., M step; parents mu_j, activation a_j = sigmoid(score_j)."""
    if not living(alive):
        return nothing(*votes.shape)
    share = zero_pairs(votes)
    for i in living(alive):
        share[i] = 1.0 / votes.shape[1]
    state = m_step(share, u, votes, alive, inverse_temperature, beta_use, beta_activate)
    for _ in range(passes - 1):
        share = e_step(state, votes, alive, evidence)
        state = m_step(share, u, votes, alive, inverse_temperature, beta_use, beta_activate)
    activation = np.array([math.exp(log_sigmoid(float(score))) for score in state.score])
    return Reference(state.mean, activation, share, state.gain)


# ------------------------------------------------------------------------------------------------ KDE routing


def kde_coupling(logits: Array, alive: Alive) -> Array:
    """c_ij = softmax_j(b_i) / sum over alive i of softmax_j(b_i): a weighted mean over the children."""
    shares = softmax_over_parents(logits, alive)
    result = np.zeros(logits.shape)
    for j in range(logits.shape[1]):
        total = sum(float(shares[i, j]) for i in living(alive))
        for i in living(alive):
            result[i, j] = shares[i, j] / total
    return result


def kde_kernel(votes: Array, parents: Array, alive: Alive, squash_kind: SquashKind, cut: bool) -> Array:
    """k_ij = 1 - |squash(V_ij) - v_j|^2, or max(0, that) with the cut."""
    result = np.zeros(votes.shape[:2])
    for i in living(alive):
        for j in range(votes.shape[1]):
            value = 1.0 - length(squash(votes[i, j], squash_kind) - parents[j]) ** 2
            result[i, j] = max(0.0, value) if cut else value
    return result


def kde(u: Array, votes: Array, alive: Alive, passes: int, squash_kind: SquashKind = "half") -> Reference:
    """c normalised over parents, then over children; v = squash(sum_i c_ij V_ij); b += k without the cut."""
    if not living(alive):
        return nothing(*votes.shape)
    logits, coupling = zero_pairs(votes), zero_pairs(votes)
    parents = np.zeros(votes.shape[1:])
    for t in range(1, passes + 1):
        coupling = kde_coupling(logits, alive)
        parents = squash_rows(weighted_sum(coupling, votes, alive), squash_kind)
        if t < passes:
            logits = logits + kde_kernel(votes, parents, alive, squash_kind, cut=False)
    return Reference(parents, lengths(parents), coupling, np.array(coupling))


def adaptive_kde(
    u: Array,
    votes: Array,
    alive: Alive,
    max_passes: int = 10,
    tolerance: float = 0.05,
    squash_kind: SquashKind = "half",
) -> Reference:
    """As `kde` with k cut at 0, until |L_t - L_(t-1)| < tolerance, L_t = log(max(sum_ij c_ij k_ij, 1e-8))."""
    if not living(alive):
        empty = nothing(*votes.shape)
        return Reference(empty.parents, empty.activation, empty.coupling, empty.gain, passes=0)
    logits, coupling = zero_pairs(votes), zero_pairs(votes)
    parents = np.zeros(votes.shape[1:])
    previous, t = math.nan, 0
    while t < max_passes:
        t += 1
        coupling = kde_coupling(logits, alive)
        parents = squash_rows(weighted_sum(coupling, votes, alive), squash_kind)
        kernel = kde_kernel(votes, parents, alive, squash_kind, cut=True)
        density = math.log(max(total_product(coupling, kernel), 1e-8))
        if t >= 2 and abs(density - previous) < tolerance:
            break
        previous = density
        logits = logits + kernel
    return Reference(parents, lengths(parents), coupling, np.array(coupling), passes=t)


def total_product(x: Array, y: Array) -> float:
    """sum_ij x_ij y_ij."""
    return sum(float(x[i, j]) * float(y[i, j]) for i in range(x.shape[0]) for j in range(x.shape[1]))


# -------------------------------------------------------------------------------------- k-means, GCN, pooling


def mean_over_children(votes: Array, alive: Alive) -> Array:
    """m_j = (1/n) sum_i V_ij over the n alive i."""
    children = living(alive)
    result = np.zeros(votes.shape[1:])
    for i in children:
        result += votes[i]
    return result / len(children)


def kmeans(
    u: Array,
    votes: Array,
    alive: Alive,
    passes: int,
    similarity: Literal["dot", "cosine"] = "dot",
    squash_kind: SquashKind = "sabour",
) -> Reference:
    """v = mean_i V_ij; then c_i = softmax_j(V_ij . v_j / |v_j|), v_j = sum_i c_ij V_ij; squash at the end."""
    if similarity not in ("dot", "cosine"):
        raise ValueError(f"unknown similarity {similarity!r}")
    if not living(alive):
        return nothing(*votes.shape)
    centres = mean_over_children(votes, alive)
    coupling = zero_pairs(votes)
    for _ in range(passes):
        logits = zero_pairs(votes)
        for i in living(alive):
            for j in range(votes.shape[1]):
                scale = max(length(centres[j]), 1e-6)
                if similarity == "cosine":
                    scale *= max(length(votes[i, j]), 1e-6)
                logits[i, j] = float(votes[i, j] @ centres[j]) / scale
        coupling = softmax_over_parents(logits, alive)
        centres = weighted_sum(coupling, votes, alive)
    parents = squash_rows(centres, squash_kind)
    return Reference(parents, lengths(parents), coupling, np.array(coupling))


def uniform_coupling(alive: Alive, parents: int, value: float) -> Array:
    """c_ij = value for alive i, else 0."""
    result = np.zeros((len(alive), parents))
    for i in living(alive):
        result[i] = value
    return result


def gcn(u: Array, vote: Vote, alive: Alive, relation: Array, squash_kind: SquashKind = "sabour") -> Reference:
    """h = vote(R u); v_j = squash((1/n) sum_i h_ij); c_ij = 1/n."""
    children = living(alive)
    if not children:
        return nothing(*vote(keep_rows(u, alive)).shape, with_relation=True)
    hidden = vote(apply_relation(relation, u, alive))
    parents = squash_rows(mean_over_children(hidden, alive), squash_kind)
    coupling = uniform_coupling(alive, hidden.shape[1], 1.0 / len(children))
    return Reference(parents, lengths(parents), coupling, np.array(coupling), keep_pairs(relation, alive))


def pooling(
    u: Array,
    votes: Array,
    alive: Alive,
    how: Literal["mean", "sum", "max"] = "mean",
    squash_kind: SquashKind = "sabour",
) -> Reference:
    """v_j = squash(pool_i V_ij) with pool the mean, the sum or the elementwise maximum."""
    if how not in ("mean", "sum", "max"):
        raise ValueError(f"unknown pooling {how!r}")
    children = living(alive)
    if not children:
        return nothing(*votes.shape, with_gain=how != "max")
    if how == "max":
        highest, coupling = max_over_children(votes, alive)
        parents = squash_rows(highest, squash_kind)
        return Reference(parents, lengths(parents), coupling)
    coupling = uniform_coupling(alive, votes.shape[1], 1.0 / len(children) if how == "mean" else 1.0)
    parents = squash_rows(weighted_sum(coupling, votes, alive), squash_kind)
    return Reference(parents, lengths(parents), coupling, np.array(coupling))


def max_over_children(votes: Array, alive: Alive) -> tuple[Array, Array]:
    """m_jh = max_i V_ijh; c_ij = (number of h where child i is the first to hold the maximum) / d."""
    _, parents, dim = votes.shape
    highest, coupling = np.zeros((parents, dim)), zero_pairs(votes)
    for j in range(parents):
        for h in range(dim):
            winner = living(alive)[0]
            for i in living(alive):
                # Strictly greater: a tie stays with the first child.
                if votes[i, j, h] > votes[winner, j, h]:
                    winner = i
            highest[j, h] = votes[winner, j, h]
            coupling[winner, j] += 1.0 / dim
    return highest, coupling


# ------------------------------------------------------------------------------------------------ transformer


def linear(x: Array, parameters: Mapping[str, Array], name: str) -> Array:
    """y_i = W x_i + b with W, b = parameters["name.weight"], parameters["name.bias"]."""
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    return np.array([weight @ x[i] + bias for i in range(x.shape[0])])


def layer_norm(x: Array, parameters: Mapping[str, Array], name: str) -> Array:
    """y_i = weight (x_i - mean(x_i)) / sqrt(var(x_i) + 1e-5) + bias, var divided by d."""
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    result = np.zeros(x.shape)
    for i in range(x.shape[0]):
        centred = x[i] - np.sum(x[i]) / x.shape[1]
        variance = float(np.sum(centred**2)) / x.shape[1]
        result[i] = weight * centred / math.sqrt(variance + 1e-5) + bias
    return result


def multi_head(queries: Array, keys: Array, values: Array, heads: int) -> tuple[Array, Array]:
    """o_q = concat over heads of sum_i w_qi v_i, w = softmax_i(q.k_i / sqrt(d/heads)); also mean of w."""
    width = queries.shape[1] // heads
    output = np.zeros(queries.shape)
    mean_weight = np.zeros((queries.shape[0], keys.shape[0]))
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        for q in range(queries.shape[0]):
            scores = [float(queries[q, part] @ key[part]) / math.sqrt(width) for key in keys]
            weights = softmax(np.array(scores))
            for i in range(keys.shape[0]):
                output[q, part] += weights[i] * values[i, part]
            mean_weight[q] += weights / heads
    return output, mean_weight


def encoder_layer(x: Array, parameters: Mapping[str, Array], heads: int) -> Array:
    """y = LayerNorm(x + attention(x)); z = LayerNorm(y + W2 relu(W1 y + b1) + b2)."""
    dim = x.shape[1]
    mixed = linear(x, parameters, "self_in")
    context, _ = multi_head(mixed[:, :dim], mixed[:, dim : 2 * dim], mixed[:, 2 * dim :], heads)
    x = layer_norm(x + linear(context, parameters, "self_out"), parameters, "norm1")
    wide = np.maximum(linear(x, parameters, "widen"), 0.0)
    return layer_norm(x + linear(wide, parameters, "narrow"), parameters, "norm2")


def transformer(
    u: Array, alive: Alive, parameters: Mapping[str, Array], heads: int, squash_kind: SquashKind = "sabour"
) -> Reference:
    """v = squash(attention of C learned queries over encoder(u)); c_ij = mean over heads of the weight."""
    children, dim = living(alive), u.shape[1]
    learned = parameters["queries"]
    if not children:
        return nothing(u.shape[0], learned.shape[0], dim, with_gain=False)
    # Only living children enter, so no later softmax needs a mask.
    encoded = encoder_layer(np.array([u[i] for i in children]), parameters, heads)
    memory = linear(encoded, parameters, "cross_memory")
    queries = linear(learned, parameters, "cross_query")
    context, weights = multi_head(queries, memory[:, :dim], memory[:, dim:], heads)
    parents = squash_rows(linear(context, parameters, "cross_out"), squash_kind)
    coupling = np.zeros((u.shape[0], learned.shape[0]))
    for place, i in enumerate(children):
        coupling[i] = weights[:, place]
    return Reference(parents, lengths(parents), coupling)


# ------------------------------------------------------------------------------- graph routing with attention


def attention(
    h: Array,
    alive: Alive,
    V: Array,
    bias: Array,
    w: Array,
    axis: Axis = "children",
    scale: Scale = "mean_one",
) -> Array:
    """alpha = softmax of m_ij = w . tanh(V h_ij + bias) over the axis; mean_one: times its entry count."""
    if scale not in ("mean_one", "none"):
        raise ValueError(f"unknown scale {scale!r}")
    result = np.zeros(h.shape[:2])
    for group in softmax_groups(living(alive), h.shape[1], axis):
        scores = [float(w @ np.tanh(V @ h[i, j] + bias)) for i, j in group]
        weights = softmax(np.array(scores)) * (len(group) if scale == "mean_one" else 1)
        for place, (i, j) in enumerate(group):
            result[i, j] = weights[place]
    return result


def softmax_groups(children: list[int], parents: int, axis: Axis) -> list[list[tuple[int, int]]]:
    """Pairs (i, j) that share one softmax: one group per parent, per child, or a single one."""
    if not children:
        return []
    if axis == "children":
        return [[(i, j) for i in children] for j in range(parents)]
    if axis == "parents":
        return [[(i, j) for j in range(parents)] for i in children]
    if axis == "both":
        return [[(i, j) for i in children for j in range(parents)]]
    raise ValueError(f"unknown axis {axis!r}")


def transform_votes(x: Array, transform: Array, alive: Alive) -> Array:
    """y_ij = T x_ij for alive i."""
    result = np.zeros(x.shape)
    for i in living(alive):
        for j in range(x.shape[1]):
            result[i, j] = transform @ x[i, j]
    return result


def pair_weights(hidden: Array, alive: Alive, parameters: AttentionParameters | None) -> Array:
    """alpha = attention(h), or 1 for alive i when there is no attention."""
    if parameters is None:
        return uniform_coupling(alive, hidden.shape[1], 1.0)
    return attention(hidden, alive, parameters.V, parameters.bias, parameters.w, parameters.axis, parameters.scale)


def graph(
    u: Array,
    vote: Vote,
    alive: Alive,
    relation: Array,
    passes: int,
    attention_parameters: AttentionParameters | None = None,
    aggregate: Literal["before", "after", "after_transformed"] = "before",
    transform: Array | None = None,
    graph_passes: Literal["once", "each"] = "once",
    agreement: Literal["votes", "aggregated"] = "votes",
    squash_kind: SquashKind = "sabour",
) -> Reference:
    """c = softmax_j(e_i); s_j = sum_i c_ij alpha_ij h_ij; v = squash(s); e_ij += x_ij.v_j, not at the end."""
    check_graph_options(aggregate, transform, graph_passes, agreement)
    source = keep_rows(u, alive)
    votes = vote(source)
    if not living(alive):
        return nothing(*votes.shape, with_relation=True)
    # `state` is what the relation acts on: the children before the vote, or the votes after it.
    state = source if aggregate == "before" else votes
    hidden, parents = votes, np.zeros(votes.shape[1:])
    logits, coupling, gain, alpha = zero_pairs(votes), zero_pairs(votes), zero_pairs(votes), zero_pairs(votes)
    for t in range(1, passes + 1):
        if t == 1 or graph_passes == "each":
            state = apply_relation(relation, state, alive)
            if aggregate == "after_transformed" and transform is not None:
                state = transform_votes(state, transform, alive)
            hidden = vote(state) if aggregate == "before" else state
            alpha = pair_weights(hidden, alive, attention_parameters)
        coupling = softmax_over_parents(logits, alive)
        gain = coupling * alpha
        parents = squash_rows(weighted_sum(gain, hidden, alive), squash_kind)
        if t < passes:
            add_agreement(logits, votes if agreement == "votes" else hidden, parents, alive)
    return Reference(parents, lengths(parents), coupling, gain, keep_pairs(relation, alive))


def check_graph_options(aggregate: str, transform: Array | None, graph_passes: str, agreement: str) -> None:
    """Refuse an option that `graph` does not define."""
    if aggregate not in ("before", "after", "after_transformed"):
        raise ValueError(f"unknown aggregate {aggregate!r}")
    if (aggregate == "after_transformed") != (transform is not None):
        raise ValueError("transform belongs to aggregate 'after_transformed', and only to it")
    if graph_passes not in ("once", "each"):
        raise ValueError(f"unknown graph_passes {graph_passes!r}")
    if agreement not in ("votes", "aggregated"):
        raise ValueError(f"unknown agreement {agreement!r}")


# ------------------------------------------------------------------------------- from words to child capsules


def position_count(total: int, width: int, stride: int) -> int:
    """1 if L <= K, else ceil((L - K) / stride) + 1: the last window may reach beyond the end."""
    return 1 if total <= width else math.ceil((total - width) / stride) + 1


def convolve(words: Array, weight: Array, bias: Array, stride: int = 1) -> Array:
    """g_t = relu(sum_k w[:, k] x_(t stride + k) + bias), words beyond the end being zero vectors."""
    filters, width, _ = weight.shape
    positions = position_count(words.shape[0], width, stride)
    result = np.zeros((positions, filters))
    for t in range(positions):
        total = bias.astype(np.float64)
        for k in range(width):
            place = t * stride + k
            if place < words.shape[0]:
                total = total + weight[:, k] @ words[place]
        result[t] = np.maximum(total, 0.0)
    return result


def primary(features: Array, weight: Array, bias: Array, squash_kind: SquashKind = "sabour") -> Array:
    """p_tk = squash(W_k g_t + b_k) with W [kinds, d, f], b [kinds, d]."""
    positions, (kinds, dim, _) = features.shape[0], weight.shape
    result = np.zeros((positions, kinds, dim))
    for t in range(positions):
        for k in range(kinds):
            result[t, k] = squash(weight[k] @ features[t] + bias[k], squash_kind)
    return result


def positional(capsules: Array, weight: Array) -> Array:
    """u_n = sum_tk w[t mod P, k, n] p_tk with w [P, kinds, n]."""
    positions, kinds, dim = capsules.shape
    result = np.zeros((weight.shape[2], dim))
    for n in range(weight.shape[2]):
        for t in range(positions):
            # Positions beyond the last weight start over with the first.
            row = t % weight.shape[0]
            for k in range(kinds):
                result[n] += weight[row, k, n] * capsules[t, k]
    return result


def attended(features: Array, capsules: Array, queries: Array, mix: Array) -> Array:
    """u_n = sum_t alpha_nt sum_k mix_nk p_tk, alpha_nt = softmax_t(query_n . g_t / sqrt(f))."""
    positions, kinds, dim = capsules.shape
    result = np.zeros((queries.shape[0], dim))
    for n in range(queries.shape[0]):
        scores = [float(queries[n] @ features[t]) / math.sqrt(features.shape[1]) for t in range(positions)]
        alpha = softmax(np.array(scores))
        for t in range(positions):
            for k in range(kinds):
                result[n] += alpha[t] * mix[n, k] * capsules[t, k]
    return result


def pooled(
    features: Array, weight: Array, bias: Array, mix: Array, scale: float, squash_kind: SquashKind = "sabour"
) -> Array:
    """u_n = sum_k mix_nk p_k, p = primary of the one position g_f = max_t g_tf / scale."""
    strongest = features[0].astype(np.float64)
    for t in range(1, features.shape[0]):
        strongest = np.maximum(strongest, features[t])
    capsules = primary(strongest[None] / scale, weight, bias, squash_kind)[0]
    result = np.zeros((mix.shape[0], capsules.shape[1]))
    for n in range(mix.shape[0]):
        for k in range(mix.shape[1]):
            result[n] += mix[n, k] * capsules[k]
    return result


def convolutional_capsules(capsules: Array, W: Array, b: Array, width: int, passes: int, stride: int = 1) -> Array:
    """P_t = leaky(votes W_j p + b_j of all kinds at positions t stride .. t stride + width - 1)."""
    total, kinds, _ = capsules.shape
    positions = position_count(total, width, stride)
    result = np.zeros((positions, W.shape[0], W.shape[1]))
    for t in range(positions):
        window = range(t * stride, min(t * stride + width, total))
        children = [capsules[place, k] for place in window for k in range(kinds)]
        # A stride wider than the window can leave the last window empty; its parents stay zero.
        if children:
            u = np.array(children)
            result[t] = leaky(u, shared_votes(u, W, b), [True] * len(children), passes).parents
    return result


# ----------------------------------------------------------------------------------------------------- losses


def as_indicator(target: Target, classes: int) -> Array:
    """T_j = 1 for the target class(es), else 0."""
    if isinstance(target, (int, np.integer)):
        result = np.zeros(classes)
        result[int(target)] = 1.0
        return result
    return np.array([float(value) for value in target])


def margin(a: Array, target: Target, m_plus: float = 0.9, m_minus: float = 0.1, down: float = 0.5) -> float:
    """sum_j T_j max(0, m_plus - a_j)^2 + down (1 - T_j) max(0, a_j - m_minus)^2."""
    T, loss = as_indicator(target, len(a)), 0.0
    for j in range(len(a)):
        loss += T[j] * max(0.0, m_plus - a[j]) ** 2
        loss += down * (1.0 - T[j]) * max(0.0, a[j] - m_minus) ** 2
    return float(loss)


def spread(a: Array, target: int, margin: float) -> float:
    """sum over j != t of max(0, margin - (a_t - a_j))^2."""
    return float(sum(max(0.0, margin - (a[target] - a[j])) ** 2 for j in range(len(a)) if j != target))


def log_softmax(x: Array) -> Array:
    """log p_k = x_k - log sum_l exp(x_l)."""
    top = float(np.max(x))
    return x - (top + math.log(float(np.sum(np.exp(x - top)))))


def cross_entropy(a: Array, target: int, scale: float, smoothing: float = 0.0) -> float:
    """-sum_j q_j log softmax(scale a)_j with q_j = (1 - smoothing) [j = t] + smoothing / C."""
    logs, loss = log_softmax(scale * a), 0.0
    for j in range(len(a)):
        wanted = (1.0 - smoothing) * (1.0 if j == target else 0.0) + smoothing / len(a)
        loss -= wanted * logs[j]
    return float(loss)


def binary_cross_entropy(a: Array, target: Target) -> float:
    """-(1/C) sum_j (T_j log a_j + (1 - T_j) log(1 - a_j)), a clamped to [1e-7, 1 - 1e-7]."""
    T, loss = as_indicator(target, len(a)), 0.0
    for j in range(len(a)):
        p = min(max(float(a[j]), 1e-7), 1.0 - 1e-7)
        loss -= T[j] * math.log(p) + (1.0 - T[j]) * math.log(1.0 - p)
    return float(loss) / len(a)


def focal(a: Array, target: int, gamma: float, scale: float) -> float:
    """-(1 - p)^gamma log p with p = softmax(scale a)_t."""
    log_p = float(log_softmax(scale * a)[target])
    return -((-math.expm1(log_p)) ** gamma) * log_p
