"""The yardstick: layers and a step as a textbook or a careful first reading of the papers would write them.

Votes by einsum, passes in a loop, gradients recorded operation by operation; nothing fused, nothing left out. The
numbers are those of capsroute's layers (tests/test_benchmarks.py).
"""

from collections.abc import Callable
from math import pi

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Layer = Callable[[Tensor, Tensor], Tensor]
"""Children [batch, child, dim] and vote matrices [child, parent, dim, dim] -> scores."""


def squash(x: Tensor, constant: float = 1.0) -> Tensor:
    r = x.norm(dim=-1, keepdim=True)
    return r * x / (constant + r**2)


def votes_of(u: Tensor, w: Tensor) -> Tensor:
    return torch.einsum("bik,ijdk->bijd", u, w)


def by_agreement(votes: Tensor, sent: Tensor, weight: Tensor | float = 1.0, *, leak: bool = False) -> Tensor:
    logits = votes.new_zeros(votes.shape[:3])
    for number in range(3):
        c = F.pad(logits, (0, 1)).softmax(dim=2)[:, :, :-1] if leak else logits.softmax(dim=2)
        v = squash(torch.einsum("bij,bijd->bjd", c * weight, sent))
        if number < 2:
            logits = logits + torch.einsum("bijd,bjd->bij", votes, v)
    return v.norm(dim=-1)


def dynamic(u: Tensor, w: Tensor) -> Tensor:
    votes = votes_of(u, w)
    return by_agreement(votes, votes)


def leaky(u: Tensor, w: Tensor) -> Tensor:
    votes = votes_of(u, w)
    return by_agreement(votes, votes, leak=True)


def kde(u: Tensor, w: Tensor) -> Tensor:
    votes = votes_of(u, w)
    squashed = squash(votes, 0.5)
    logits = votes.new_zeros(votes.shape[:3])
    for number in range(3):
        c = logits.softmax(dim=2)
        v = squash(torch.einsum("bij,bijd->bjd", c / c.sum(dim=1, keepdim=True), votes), 0.5)
        if number < 2:
            logits = logits + 1 - ((squashed - v[:, None]) ** 2).sum(dim=3)
    return v.norm(dim=-1)


def kmeans(u: Tensor, w: Tensor) -> Tensor:
    votes = votes_of(u, w)
    centres = votes.mean(dim=1)
    for _ in range(3):
        c = torch.einsum("bijd,bjd->bij", votes, F.normalize(centres, dim=2)).softmax(dim=2)
        centres = torch.einsum("bij,bijd->bjd", c, votes)
    return squash(centres).norm(dim=-1)


def em(u: Tensor, w: Tensor) -> Tensor:
    votes = votes_of(u, w)
    parents, dim = votes.shape[2:]
    present = u.norm(dim=-1)
    coupling = votes.new_full(votes.shape[:3], 1 / parents)
    for number in range(3):
        r = coupling * present[:, :, None]
        total = r.sum(dim=1)
        share = (r / total[:, None])[..., None]
        mean = (share * votes).sum(dim=1)
        variance = (share * (votes - mean[:, None]) ** 2).sum(dim=1) + 1e-8
        cost = total * (0.5 * variance.log()).sum(dim=2)
        score = torch.sigmoid(-parents / (u.shape[1] * dim) * cost)
        if number < 2:
            density = -0.5 * ((votes - mean[:, None]) ** 2 / variance[:, None] + (2 * pi * variance).log()[:, None])
            coupling = (score.log()[:, None] + density.sum(dim=3)).softmax(dim=2)
    return score


def adaptive_kde(u: Tensor, w: Tensor) -> Tensor:
    votes = votes_of(u, w)
    squashed = squash(votes, 0.5)
    logits = votes.new_zeros(votes.shape[:3])
    density = votes.new_full((len(votes),), torch.inf)
    going = torch.ones(len(votes), dtype=torch.bool)
    for number in range(10):
        c = logits.softmax(dim=2)
        c = c / c.sum(dim=1, keepdim=True)
        v = squash(torch.einsum("bij,bijd->bjd", c, votes), 0.5)
        if number < 9:
            kernel = (1 - ((squashed - v[:, None]) ** 2).sum(dim=3)).clamp_min(0)
            before, density = density, (c * kernel).sum(dim=(1, 2)).log()
            going = going & ~((density - before).abs() < 0.05)
            logits = logits + kernel * going[:, None, None]
    return v.norm(dim=-1)


def largest(u: Tensor, w: Tensor) -> Tensor:
    return squash(votes_of(u, w).max(dim=1).values).norm(dim=-1)


def mean(u: Tensor, w: Tensor) -> Tensor:
    return squash(votes_of(u, w).mean(dim=1)).norm(dim=-1)


def total(u: Tensor, w: Tensor) -> Tensor:
    return squash(votes_of(u, w).sum(dim=1)).norm(dim=-1)


def gcn(u: Tensor, w: Tensor) -> Tensor:
    return squash(votes_of(wasserstein_graph(u) @ u, w).mean(dim=1)).norm(dim=-1)


def graph(u: Tensor, w: Tensor, attention: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    votes, hidden = votes_of(u, w), votes_of(wasserstein_graph(u) @ u, w)
    matrix, bias, score = attention
    alpha = (torch.tanh(hidden @ matrix.T + bias) @ score).softmax(dim=1) * u.shape[1]
    return by_agreement(votes, hidden, alpha)


def wasserstein_graph(u: Tensor) -> Tensor:
    x = u.sort(dim=-1).values
    distances = torch.cdist(x, x, p=1.0) / x.shape[-1]
    return (-distances).softmax(dim=2) + torch.eye(u.shape[1])


LAYERS: dict[str, Layer] = {
    "dynamic": dynamic,
    "leaky": leaky,
    "kde": kde,
    "adaptive_kde": adaptive_kde,
    "kmeans": kmeans,
    "em": em,
    "gcn": gcn,
    "max": largest,
    "mean": mean,
    "sum": total,
}
"""By name; `graph` needs the weights of its attention too. `transformer` has no votes, and so no textbook of them."""


class Network(nn.Module):
    """The paper's network, read plainly: every primary capsule is made, squashed, masked and kept."""

    def __init__(self, *, vocabulary: int, classes: int, length: int) -> None:
        super().__init__()
        positions = (length - 3) // 2 + 1
        self.words = nn.Embedding(vocabulary, 300, padding_idx=0)
        self.convolution = nn.Conv1d(300, 64, 3, stride=2)
        self.primary = nn.Linear(64, 64 * 64)
        self.compression = nn.Parameter(torch.randn(positions * 64, 50) * 0.01)
        self.votes = nn.Parameter(torch.randn(50, classes, 64, 64) / 8)
        self.attention = nn.ParameterList([torch.randn(64, 64) / 8, torch.zeros(64), torch.randn(64) / 8])

    def forward(self, ids: Tensor) -> Tensor:
        features = self.convolution(self.words(ids).transpose(1, 2)).relu().transpose(1, 2)
        capsules = squash(self.primary(features).unflatten(2, (64, 64)))
        there = (ids != 0)[:, : 2 * features.shape[1] : 2]
        capsules = capsules * there[:, :, None, None]
        weight = self.compression.view(-1, 64, 50)[: features.shape[1]].flatten(0, 1)
        children = torch.einsum("bhd,hn->bnd", capsules.flatten(1, 2), weight)
        matrix, bias, score = self.attention
        return graph(children, self.votes, (matrix, bias, score))


def margin(scores: Tensor, targets: Tensor) -> Tensor:
    wanted = F.one_hot(targets, scores.shape[1])
    up, down = (0.9 - scores).clamp_min(0) ** 2, (scores - 0.1).clamp_min(0) ** 2
    return (wanted * up + 0.5 * (1 - wanted) * down).sum(dim=1).mean()
