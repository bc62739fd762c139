"""What every routing takes and gives.

    routed = routing(children, vote, mask)

`vote` turns children into votes; a routing calls it as often as its mathematics asks, so all methods share the same
vote weights. `forward` checks and guards once for all; a method writes `route` and nothing else.

Defined for every method: masked children change nothing; a document whose children are all masked gets zero parents
and zero activation; a document's result does not depend on its batch mates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal, NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint  # pyright: ignore[reportUnknownVariableType]

from capsroute.capsules.gates import closed_forms, gate
from capsroute.capsules.guards import has_dtype_of, is_a, may_look, same_dtype, whole
from capsroute.checks import has_shape

CouplingAxis = Literal["parent", "leak", "child"]
Vote = Callable[[Tensor], Tensor]
MANY_VOTES, VOTES_AT_ONCE = 2**24, 2**22
"""Bytes of votes from which on documents are routed in parts, and of the votes of a part: with what is made of them
they stay in the last cache of a processor."""


class Routed(NamedTuple):
    """What every routing returns.

    Where `gain` is given, the result is a sum: parents = squash(sum_i gain_ij * vote(voters)_ij), exactly (for `em`
    without the squash).
    """

    parents: Float[Tensor, "batch parent dim"]  # class capsules
    activation: Float[Tensor, "batch parent"]  # class score in [0, 1]
    coupling: Float[Tensor, "batch child parent"] | None = None  # share of each child that each parent received
    gain: Float[Tensor, "batch child parent"] | None = None  # what multiplied each vote on its way into the parent
    relation: Float[Tensor, "batch child child"] | None = None  # the graph
    voters: Float[Tensor, "batch child dim"] | None = None  # what voted: the children, mixed by the graph if any
    iterations: Int[Tensor, " batch"] | None = None  # passes used, where they vary


class Routing(nn.Module, ABC):
    """Send child capsules to parent capsules. A method is a final subclass that writes `route`.

    Args:
        children: how many there are, or None for any number (then refuse what depends on it).
        parents: how many class capsules.
        dim: dimension of votes and parents.
        iterations: passes; a method that makes only one takes the number, checks it and says so in its docstring.
    """

    coupling_axis: ClassVar[CouplingAxis | None] = None
    """Over which axis the coupling sums to 1; `leak`: over the parents and one more that is thrown away."""
    default_iterations: ClassVar[int] = 3
    needs_vote: ClassVar[bool] = True
    activation_is_length: ClassVar[bool] = True

    def __init__(self, *, children: int | None, parents: int, dim: int, iterations: int) -> None:
        super().__init__()
        if children is not None:
            whole("children", children, 1)
        whole("parents", parents, 1)
        whole("dim", dim, 1)
        whole("iterations", iterations, 1)
        self.n_children = children
        self.n_parents = parents
        self.dim = dim
        self.iterations = iterations

    @abstractmethod
    def route(
        self, children: Float[Tensor, "batch child dim"], vote: Vote, mask: Bool[Tensor, "batch child"]
    ) -> Routed:
        """The method itself. Masked children are zero; the votes that `vote` gives have been checked."""

    def initial_gain(self, children: int) -> float:
        """Root mean square of `gain` in the first pass, times what the graph leaves of a child's length.

        It sets the initial scale of the votes (capsules/scales.py).
        """
        return 1 / children

    def forward(self, children: Tensor, vote: Vote | None, mask: Tensor | None = None) -> Routed:
        is_a("children", children, Tensor)
        has_shape("children", children, batch=None, child=self.n_children, dim=None)
        if children.shape[1] == 0:
            raise ValueError("children must hold at least one child, but the child axis is empty.")
        has_dtype_of("children", children, self)
        if mask is not None:
            is_a("mask", mask, Tensor)
            has_shape("mask", mask, batch=children.shape[0], child=children.shape[1])
            if mask.dtype != torch.bool:
                raise ValueError(f"mask must be boolean (True: the child is there), but has the dtype {mask.dtype}.")
            children = children.masked_fill(~mask[:, :, None], 0)
        # Where it may not look, the loss of a training step finds the same fault.
        if may_look(children) and not torch.isfinite(children).all():
            raise ValueError("children must be finite, but hold NaN or infinity.")

        if mask is None:
            mask = children.new_ones(children.shape[:2], dtype=torch.bool)
        routed = self._route_in_parts(children, partial(self._votes, vote), mask)
        some = mask.any(dim=1)
        return routed._replace(
            parents=routed.parents * some[:, None, None],
            # A length of almost 1 may round to a little more.
            activation=routed.activation.clamp(max=1) * some[:, None],
        )

    def _route_in_parts(self, children: Tensor, vote: Vote, mask: Tensor) -> Routed:
        """Route as many documents at a time as have votes that the cache holds; no result depends on the others.

        The votes of a part are forgotten when it is routed, and made again for its gradient: with thousands of
        parents that is faster than to fetch them from memory, which need not hold those of all documents.
        """
        of_one = children.shape[1] * self.n_parents * self.dim * children.element_size()
        few = not self.needs_vote or len(children) == 1 or len(children) * of_one <= MANY_VOTES
        if few or not closed_forms(children):
            return self.route(children, vote, mask)
        route: Callable[..., Routed] = self.route
        if torch.is_grad_enabled():
            route = cast(Callable[..., Routed], partial(checkpoint, self.route, use_reentrant=False))
        texts = max(1, VOTES_AT_ONCE // of_one)
        slices = [slice(start, start + texts) for start in range(0, len(children), texts)]
        parts = [route(children[part], vote, mask[part]) for part in slices]
        fields: list[Tensor | None] = []
        for name in Routed._fields:
            of_parts = [getattr(part, name) for part in parts]
            fields.append(None if of_parts[0] is None else torch.cat(of_parts))
        return Routed(*fields)  # pyright: ignore[reportArgumentType]

    def _votes(self, vote: Vote | None, children: Tensor) -> Tensor:
        """Call `vote` and check what it gives."""
        if vote is None:
            raise ValueError(f"{type(self).__name__} needs a vote module, but vote is None.")
        if not callable(vote):
            raise ValueError(f"vote must be a module from children to votes, but is {vote!r}.")
        votes = vote(children)
        is_a("votes", votes, Tensor)
        same_dtype("votes", votes, children.dtype, "the children")
        has_shape(
            "votes",
            votes,
            batch=children.shape[0],
            child=children.shape[1],
            parent=self.n_parents,
            dim=self.dim,
        )
        return votes


def even_shares(mask: Bool[Tensor, "batch child"], like: Tensor) -> Float[Tensor, "batch child"]:
    """1 / (children that are there) for each of them, 0 for the others; in the precision of `like`."""
    there = mask.to(like.dtype)
    return there / there.sum(dim=1, keepdim=True).clamp_min(1)


# The two sums that routing by agreement is made of. i child, j parent, d dimension.


def weighted_sum(
    gain: Float[Tensor, "batch child parent"], votes: Float[Tensor, "batch child parent dim"]
) -> Float[Tensor, "batch parent dim"]:
    """sum_i gain_ij vote_ij; the gain is a gate."""
    return torch.einsum("bij,bijd->bjd", gate(gain), votes)


def agreement(
    votes: Float[Tensor, "batch child parent dim"], parents: Float[Tensor, "batch parent dim"]
) -> Float[Tensor, "batch child parent"]:
    """vote_ij . v_j"""
    # Not einsum: its gradient is a batch of products with one column, slower than this one's.
    return (votes * parents[:, None]).sum(dim=3)
