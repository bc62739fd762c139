"""Routings with the defects of public capsule code, each of which the contract must find."""

import torch
from torch import Tensor

from capsroute.capsules.squash import length, squash
from capsroute.routing import Routed, Routing, agreement, weighted_sum


class _Wrong(Routing):
    """Two passes of dynamic routing, with places to go wrong in."""

    coupling_axis = "parent"
    softmax_axis = 2

    def __init__(self, *, children: int | None, parents: int, dim: int, iterations: int = 3) -> None:
        super().__init__(children=children, parents=parents, dim=dim, iterations=iterations)

    def squash(self, x: Tensor) -> Tensor:
        return squash(x)

    def logits(self, votes: Tensor, parents: Tensor) -> Tensor:
        return agreement(votes, parents)

    def hide(self, coupling: Tensor, mask: Tensor) -> Tensor:
        return coupling * mask[:, :, None]

    def route(self, children: Tensor, vote, mask: Tensor) -> Routed:
        votes = vote(children)
        first = torch.zeros(votes.shape[:3], dtype=votes.dtype).softmax(dim=self.softmax_axis)
        parents = self.squash(weighted_sum(self.hide(first, mask), votes))
        coupling = self.hide(self.logits(votes, parents).softmax(dim=self.softmax_axis), mask)
        parents = self.squash(weighted_sum(coupling, votes))
        return Routed(parents, length(parents), coupling, coupling, voters=children)


class SoftmaxOverChildren(_Wrong):
    """gram-ai, timomernick, higgsfield."""

    softmax_axis = 1


class LogitsOfTheBatch(_Wrong):
    """cedrickchee, timomernick."""

    def logits(self, votes: Tensor, parents: Tensor) -> Tensor:
        return agreement(votes, parents).mean(dim=0, keepdim=True).expand(votes.shape[:3])


class SquashWithoutCare(_Wrong):
    """NLP-Capsule, HA-CapsNet, gram-ai, danielhavir."""

    def squash(self, x: Tensor) -> Tensor:
        q = x.square().sum(dim=-1, keepdim=True)
        return q / (1 + q) * x / q.sqrt()


class MaskForgotten(_Wrong):
    """All of them."""

    def hide(self, coupling: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002
        return coupling


class HalfTheGradient(_Wrong):
    """The agreement taken out of the graph: the same value, another gradient."""

    def logits(self, votes: Tensor, parents: Tensor) -> Tensor:
        return agreement(votes, parents).detach()


class WrongScore(_Wrong):
    """A score that is not the length of the capsule."""

    def route(self, children: Tensor, vote, mask: Tensor) -> Routed:
        routed = super().route(children, vote, mask)
        return routed._replace(activation=routed.activation.square())


class WrongGain(_Wrong):
    """A gain that does not add up."""

    def route(self, children: Tensor, vote, mask: Tensor) -> Routed:
        routed = super().route(children, vote, mask)
        return routed._replace(gain=routed.gain.roll(1, dims=1))


ROUTINGS: dict[type[Routing], str] = {
    SoftmaxOverChildren: "coupling sums to 1 over parents",
    LogitsOfTheBatch: "does not depend on batch mates",
    SquashWithoutCare: "finite",
    MaskForgotten: "a masked child has no coupling",
    HalfTheGradient: "gradients equal numerical ones",
    WrongScore: "activation is the length of the parent",
    WrongGain: "parents are the sum of gain|squash shortens",
}
