"""Votes: what each child says each parent should be.

    unshared   W_ij u_i + b_ij            a matrix for every pair (the paper)
    shared     W_j u_i + b_j              a matrix for every parent; any number of children
    low_rank   up_j (down_i u_i) + b_j    a matrix for every child and one for every parent, rank r between:
                                          for thousands of classes

Parameters, with N children, C parents, dimension d: N C d (d + 1); C d (d + 1); N r d + C d (r + 1).
Weights start as random normal numbers of standard deviation 1 / sqrt(d), so that a vote is as long as its child;
`rescale` then gives them the length that the routing needs (capsules/scales.py). Biases start at zero.

>>> make_votes("unshared", children=5, parents=3, dim=4)(torch.ones(2, 5, 4)).shape
torch.Size([2, 5, 3, 4])
"""

from abc import ABC, abstractmethod
from math import sqrt
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capsroute.capsules.gates import closed_forms
from capsroute.capsules.guards import has_dtype_of, is_a, whole
from capsroute.capsules.unshared import unshared_votes
from capsroute.checks import has_shape, look_up

VotesName = Literal["unshared", "shared", "low_rank"]
Children = Float[Tensor, "batch child dim"]
Votes = Float[Tensor, "batch child parent dim"]


class Vote(nn.Module, ABC):
    """children -> votes; linear in the children but for a bias. A subclass writes `of`."""

    bias: nn.Parameter
    spread: int
    """How many dimensions the votes of one child lie in: dim, or the rank."""
    n_children: int | None
    """How many it has matrices for; None: any number."""

    def forward(self, children: Tensor) -> Votes:
        is_a("children", children, Tensor)
        has_shape("children", children, batch=None, child=self.n_children, dim=self.bias.shape[-1])
        has_dtype_of("children", children, self)
        return self.of(children)

    @abstractmethod
    def of(self, children: Children) -> Votes:
        """The votes of children that have been checked."""

    @abstractmethod
    def rescale(self, factor: float) -> None:
        """Multiply the matrix from child to parent, not the bias, by a number."""


class UnsharedVote(Vote):
    """W_ij u_i + b_ij."""

    def __init__(self, *, children: int, parents: int, dim: int) -> None:
        super().__init__()
        self.spread = dim
        self.n_children = children
        self.weight = nn.Parameter(torch.randn(children, parents, dim, dim) / sqrt(dim))
        self.bias = nn.Parameter(torch.zeros(children, parents, dim))

    def of(self, children: Children) -> Votes:
        if closed_forms(children):
            return unshared_votes(children, self.weight, self.bias)
        # i child, j parent, k dimension in, d dimension out
        return torch.einsum("bik,ijdk->bijd", children, self.weight) + self.bias

    @torch.no_grad()
    def rescale(self, factor: float) -> None:
        self.weight.mul_(factor)


class SharedVote(Vote):
    """W_j u_i + b_j."""

    def __init__(self, *, parents: int, dim: int) -> None:
        super().__init__()
        self.spread = dim
        self.n_children = None
        self.weight = nn.Parameter(torch.randn(parents, dim, dim) / sqrt(dim))
        self.bias = nn.Parameter(torch.zeros(parents, dim))

    def of(self, children: Children) -> Votes:
        return torch.einsum("bik,jdk->bijd", children, self.weight) + self.bias

    @torch.no_grad()
    def rescale(self, factor: float) -> None:
        self.weight.mul_(factor)


class LowRankVote(Vote):
    """up_j (down_i u_i) + b_j."""

    def __init__(self, *, children: int, parents: int, dim: int, rank: int) -> None:
        super().__init__()
        self.spread = min(rank, dim)
        self.n_children = children
        self.down = nn.Parameter(torch.randn(children, rank, dim) / sqrt(dim))
        self.up = nn.Parameter(torch.randn(parents, dim, rank) / sqrt(rank))
        self.bias = nn.Parameter(torch.zeros(parents, dim))

    def of(self, children: Children) -> Votes:
        narrow = torch.einsum("bik,irk->bir", children, self.down)
        return torch.einsum("bir,jdr->bijd", narrow, self.up) + self.bias

    @torch.no_grad()
    def rescale(self, factor: float) -> None:
        self.up.mul_(factor)


VOTES: dict[str, type[Vote]] = {"unshared": UnsharedVote, "shared": SharedVote, "low_rank": LowRankVote}


def make_votes(kind: VotesName, *, children: int, parents: int, dim: int, rank: int | None = None) -> Vote:
    """Votes by name; `rank` belongs to low_rank alone."""
    look_up("kind of votes", kind, VOTES)
    whole("children", children, 1)
    whole("parents", parents, 1)
    whole("dim", dim, 1)
    if kind == "low_rank":
        if rank is None:
            raise ValueError("low_rank votes need a rank: give rank=16, say.")
        whole("rank", rank, 1)
        return LowRankVote(children=children, parents=parents, dim=dim, rank=rank)
    if rank is not None:
        raise ValueError(f"rank={rank} belongs to low_rank votes, but {kind} votes were asked for.")
    if kind == "shared":
        return SharedVote(parents=parents, dim=dim)
    return UnsharedVote(children=children, parents=parents, dim=dim)
