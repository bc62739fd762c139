"""The loop of routing by agreement, with its gradient in closed form.

    e_ij = 0;  repeat:  c_ij = softmax_j(e_ij);  s_j = sum_i c_ij a_ij h_ij;  v_j = squash(s_j);  e_ij += û_ij . v_j

`dynamic` and `leaky` sum the votes that they compare (h = û); graph routing sums what the graph made of them and
weighs it (a: attention). Recorded operation by operation, the gradient of the votes is a sum of 2 * passes - 1 outer
products, each as large as the votes. In closed form they are one batched product of that many columns:

    dh = sum_r (c a)_r x ds_r          dû = sum_r de_r x v_r

The plain loop stays: it is what the closed form is tested against, and what is recorded where gates are held.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from capsroute.capsules.gates import closed_forms
from capsroute.capsules.squash import SquashKind, length, squash, squash_factor, squash_slope
from capsroute.routing.base import agreement, weighted_sum

Votes = Float[Tensor, "batch child parent dim"]
Table = Float[Tensor, "batch child parent"]


class Agreed(NamedTuple):
    """The last pass."""

    coupling: Table
    parents: Float[Tensor, "batch parent dim"]


def route_by_agreement(
    votes: Votes,
    weight: Table,
    *,
    iterations: int,
    kind: SquashKind,
    sent: Votes | None = None,
    leak: float | None = None,
) -> Agreed:
    """Route the votes.

    Args:
        weight: what multiplies each vote beside its coupling.
        sent: what is summed, where it is not the votes themselves.
        leak: logit of one more parent, which is thrown away; None: no such parent.
    """
    if closed_forms(votes):
        return Agreed(*_ByAgreement.apply(votes, sent, weight, iterations, kind, leak))  # pyright: ignore
    return plain_loop(votes, votes if sent is None else sent, weight, iterations, kind, leak)


def plain_loop(
    votes: Votes, sent: Votes, weight: Table, iterations: int, kind: SquashKind, leak: float | None
) -> Agreed:
    """The passes as they are written above."""
    logits = votes.new_zeros(votes.shape[:3])
    coupling = couplings(logits, leak, dim=2)
    parents = squash(weighted_sum(coupling * weight, sent), kind)
    for _ in range(iterations - 1):
        logits = logits + agreement(votes, parents)
        coupling = couplings(logits, leak, dim=2)
        parents = squash(weighted_sum(coupling * weight, sent), kind)
    return Agreed(coupling, parents)


def couplings(logits: Tensor, leak: float | None, dim: int) -> Tensor:
    """softmax over the parents, and over one more whose logit is `leak`: its share is dropped."""
    if leak is None:
        return logits.softmax(dim)
    last_first = F.pad(logits.movedim(dim, -1), (0, 1), value=leak).softmax(dim=-1)[..., :-1]
    return last_first.movedim(-1, dim)


class _ByAgreement(torch.autograd.Function):
    """Within, parents come before children: [batch, parent, child, dim], so that each product is a batched one."""

    @staticmethod
    def forward(
        ctx: Any,
        votes: Tensor,
        sent: Tensor | None,
        weight: Tensor,
        iterations: int,
        kind: SquashKind,
        leak: float | None,
    ) -> tuple[Tensor, Tensor]:
        asked = votes.transpose(1, 2).contiguous()
        summed = asked if sent is None else sent.transpose(1, 2).contiguous()
        alpha = weight.transpose(1, 2)
        logits = torch.zeros_like(asked[..., 0])
        passes: list[tuple[Tensor, Tensor]] = []
        parents = asked.new_zeros(asked.shape[0], asked.shape[1], asked.shape[3])
        for number in range(iterations):
            if number:
                logits = logits + (asked @ parents[..., None]).squeeze(3)
            coupling = couplings(logits, leak, dim=1)
            total = ((coupling * alpha)[:, :, None, :] @ summed).squeeze(2)
            parents = total * squash_factor(length(total, keepdim=True), kind)
            passes.append((coupling, total))
        ctx.save_for_backward(asked, summed, alpha, *(tensor for one in passes for tensor in one))
        ctx.kind, ctx.same = kind, sent is None
        return passes[-1][0].transpose(1, 2), parents

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        d_coupling, d_parents = gradients[0].transpose(1, 2), gradients[1]
        asked, summed, alpha, *passes = ctx.saved_tensors
        d_alpha = torch.zeros_like(alpha)
        d_logits: Tensor | None = None  # of the logits of the pass after, with all that they are added into
        to_sent: list[tuple[Tensor, Tensor]] = []
        to_votes: list[tuple[Tensor, Tensor]] = []
        for coupling, total in reversed(list(zip(passes[::2], passes[1::2], strict=True))):
            r = length(total, keepdim=True)
            factor = squash_factor(r, ctx.kind)
            if d_logits is not None:
                to_votes.append((d_logits, total * factor))
                d_parents = (d_logits[:, :, None, :] @ asked).squeeze(2)
            along = (total * d_parents).sum(dim=2, keepdim=True)
            d_total = factor * d_parents + squash_slope(r, ctx.kind) * along * total
            to_sent.append((coupling * alpha, d_total))
            d_gain = (summed @ d_total[..., None]).squeeze(3)
            d_alpha += d_gain * coupling
            d_coupled = d_gain * alpha
            if d_logits is None:
                d_coupled = d_coupled + d_coupling
            of_pass = coupling * (d_coupled - (coupling * d_coupled).sum(dim=1, keepdim=True))
            d_logits = of_pass if d_logits is None else d_logits + of_pass
        if ctx.same:
            return _outer(to_sent + to_votes), None, d_alpha.transpose(1, 2), None, None, None
        return (
            _outer(to_votes) if to_votes else torch.zeros_like(asked).transpose(1, 2),
            _outer(to_sent),
            d_alpha.transpose(1, 2),
            None,
            None,
            None,
        )


def _outer(pairs: list[tuple[Tensor, Tensor]]) -> Votes:
    """The sum of the outer products, [batch, child, parent, dim]."""
    left, right = (torch.stack(side, dim=2) for side in zip(*pairs, strict=True))
    return (left.transpose(2, 3) @ right).transpose(1, 2)
