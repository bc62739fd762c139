"""Exact credit: how much every word of one text added to, or took from, the capsule of every class.

A class capsule is squash(s_c), with s_c = sum_i gain_ic vote(voter_i). Whatever multiplies on the way from the words
to s_c is a gate (capsules/gates.py): squash factors, attention, the graph, couplings. With the gates held at the
values of the pass that made the prediction, and the features that fired and won a maximum kept, s_c is linear in the
word vectors x_t and in the biases b of the layers, so that with the direction d_c = s_c / |s_c|

    |s_c| = d_c . s_c = sum_t (d|s_c| / dx_t) . x_t + sum_b (d|s_c| / db) . b = sum_t credit[c, t] + bias[c]

A forward pass and one backward pass for each class give it for all words. The sum is checked at every call.

What is divided, `Credit.quantity`
    length_before_squash   one column: |s_c|. The score is its squash, which keeps the order.
    score                  several columns: their class capsules are squashed, then averaged. Each column's squash
                           factor is one more gate; what is divided is the length of the mean: the score.
    capsule                `em`: the length of the class capsule, a weighted mean of votes. The score is a sigmoid of
                           how tight the votes lie around it, no sum of words: this credit does not explain it.

>>> from capsroute.model import NetworkConfig
>>> network = CapsuleNetwork(NetworkConfig(vocabulary=50, classes=3, word_dim=8, kinds=4, dim=8, children=6))
>>> credit = attribute(network, torch.tensor([[4, 8, 15, 16, 23, 42]]))
>>> credit.tokens.shape, credit.columns[0].children.shape
(torch.Size([3, 6]), torch.Size([3, 6]))
>>> torch.allclose(credit.tokens.sum(1) + credit.bias, credit.total, rtol=1e-5)
True
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from capsroute.capsules.gates import held_gates
from capsroute.capsules.squash import length
from capsroute.checks import at_least, has_shape
from capsroute.encoders.base import PADDING
from capsroute.encoders.ngram import check_ids
from capsroute.model import CapsuleNetwork, Column, ColumnOutput

Quantity = Literal["length_before_squash", "score", "capsule"]

EXACT = ("graph", "dynamic", "leaky", "kde", "adaptive_kde", "kmeans", "gcn", "mean", "sum")
"""The routings whose score is a function of a sum over the words."""

TOLERANCE = 1e-3
"""Of the check: far above the rounding of any precision that a network runs in, far below a forgotten gate."""


@dataclass(frozen=True)
class ColumnCredit:
    """What the children of one column did; numbers in the unit of `Credit.total`."""

    children: Float[Tensor, "class child"]
    """What each child, after it has read its neighbours in the graph, sent to each class: over the children of all
    columns they sum to `Credit.total`, with the bias of the votes included."""
    coupling: Float[Tensor, "child class"] | None
    """Share of each child that each class received, where the routing has one."""
    relation: Float[Tensor, "child child"] | None
    """The graph."""
    readers: Int[Tensor, " reader"]
    """The children whose reading was computed, the one with the largest credit for any class first."""
    reading: Float[Tensor, "reader token"]
    """Share of each word in a child: its part, in absolute value, of the length of the child (before the child has
    read its neighbours), divided so that each row sums to 1 (to 0, where no word moves the child)."""


@dataclass(frozen=True)
class Credit:
    """The parts of every class for one text: `tokens.sum(1) + bias` is `total`. The orphan class is left out."""

    scores: Float[Tensor, " class"]
    total: Float[Tensor, " class"]
    tokens: Float[Tensor, "class token"]
    bias: Float[Tensor, " class"]
    quantity: Quantity
    columns: tuple[ColumnCredit, ...]


def attribute(network: CapsuleNetwork, ids: Tensor, *, readers: int = 64) -> Credit:
    """Divide the class capsules of one text among its words.

    The network is read as in evaluation, without dropout, and left as it is; other threads may use it meanwhile.

    Args:
        ids: the text's token numbers, [1, token]; padding gets no credit.
        readers: for how many children, those with the most credit, to compute the words that they read; each costs
            a backward pass.
    """
    has_shape("ids", ids, batch=1, token=None)
    at_least("readers", readers, 0)
    with torch.inference_mode(False), torch.enable_grad(), held_gates():
        return _attribute(network, check_ids(ids), readers)


def _attribute(network: CapsuleNetwork, ids: Tensor, readers: int) -> Credit:
    text = _TextNetwork(network, ids)
    output = text.network(text.ids)
    sums = [_vote_sum(network, column, made) for column, made in zip(text.columns, output.columns, strict=True)]
    scales, quantity = _scales(sums, output.columns, text.columns[0].routing.activation_is_length)
    divided = torch.stack([scale[:, None] * one.value for scale, one in zip(scales, sums, strict=True)]).sum(dim=0)
    total = length(divided).detach()
    # A class capsule of length zero has no direction: nothing spoke for the class, or all that did cancelled.
    direction = torch.where(total[:, None] > 0, divided.detach() / total[:, None], 0)

    classes = network.config.classes
    tokens, biases = zip(*(text.divide((direction[c] * divided[c]).sum()) for c in range(classes)), strict=True)
    credit = torch.stack(tokens)
    bias = torch.stack(biases)
    _check_sum(network, credit, bias, total[:classes])

    # i child, j parent, d dimension: gain_ij vote_ij . direction_j
    sent = [
        torch.einsum("ij,ijd,jd->ji", one.gain, one.votes, direction * scale[:, None]).detach()[:classes]
        for one, scale in zip(sums, scales, strict=True)
    ]
    columns = tuple(
        ColumnCredit(
            children=children,
            coupling=None if made.routed.coupling is None else made.routed.coupling[0, :, :classes].detach(),
            relation=None if made.routed.relation is None else made.routed.relation[0].detach(),
            readers=which,
            reading=text.reading(made.children.values[0], which),
        )
        for children, made, which in zip(sent, output.columns, _strongest(sent, readers), strict=True)
    )
    return Credit(output.scores[0].detach(), total[:classes], credit, bias, quantity, columns)


class _TextNetwork:
    """A network whose vocabulary is one text, and which shares all other weights with the network it was made from.

    A row of its embedding is one word at one place, so that the gradient of the row is that word's alone; and nobody
    else's network is touched.
    """

    def __init__(self, network: CapsuleNetwork, ids: Tensor) -> None:
        words = network.encoder.words.weight.detach()
        if int(ids.min()) < 0 or int(ids.max()) >= len(words):
            raise ValueError(f"ids must be numbers from 0 to {len(words) - 1}, the vocabulary of this network.")
        # What deepcopy finds in its memo it takes instead of copying. Only biases need a gradient.
        memo: dict[int, Tensor] = {id(buffer): buffer for buffer in network.buffers()}
        for name, parameter in network.named_parameters():
            memo[id(parameter)] = nn.Parameter(parameter.detach(), requires_grad=name.endswith("bias"))
        self.network = deepcopy(network, memo).eval()
        self.biases = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        table = torch.cat([torch.zeros_like(words[:1]), words[ids[0]]])
        self.network.encoder.words = nn.Embedding(*table.shape, padding_idx=PADDING, _weight=table)
        self.words = self.network.encoder.words.weight
        place = torch.arange(1, ids.shape[1] + 1, device=ids.device)
        self.ids = torch.where(ids == PADDING, PADDING, place)
        self.columns = [column for column in self.network.columns if isinstance(column, Column)]

    def divide(self, number: Tensor) -> tuple[Float[Tensor, " token"], Float[Tensor, ""]]:
        """The parts of a number that the words gave, and the part that the biases gave."""
        of_words, *of_biases = torch.autograd.grad(
            number, [self.words, *self.biases], retain_graph=True, materialize_grads=True
        )
        # Terms of both signs cancel: summed in double precision they leave no rounding of their own.
        tokens = self._times_words(of_words)
        bias = tokens.new_zeros(())
        for gradient, value in zip(of_biases, self.biases, strict=True):
            bias = bias + (gradient.double() * value.detach().double()).sum()
        return tokens.to(number.dtype), bias.to(number.dtype)

    def _times_words(self, gradient: Tensor) -> Float[Tensor, " token"]:
        return (gradient.double() * self.words.detach().double()).sum(dim=1)[1:]

    def reading(self, children: Float[Tensor, "child dim"], which: Int[Tensor, " reader"]) -> Tensor:
        """`ColumnCredit.reading` of some children."""
        numbers = (length(children[child]) for child in which)
        gradients = (torch.autograd.grad(number, self.words, retain_graph=True)[0] for number in numbers)
        rows = [self._times_words(gradient).abs().to(children.dtype) for gradient in gradients]
        table = torch.stack(rows) if rows else children.new_zeros(0, self.ids.shape[1])
        whole = table.sum(dim=1, keepdim=True)
        return torch.where(whole > 0, table / whole, 0)


class _VoteSum(NamedTuple):
    """s_c of one column, and what it is a sum of."""

    gain: Float[Tensor, "child parent"]
    votes: Float[Tensor, "child parent dim"]
    value: Float[Tensor, "parent dim"]


def _vote_sum(network: CapsuleNetwork, column: Column, made: ColumnOutput) -> _VoteSum:
    routed = made.routed
    if routed.gain is None or routed.voters is None or column.vote is None:
        # Graph routing has one setting, and no other, that takes its sum away.
        setting = " with aggregate='after_transformed'" if network.config.routing == "graph" else ""
        raise ValueError(
            f"routing '{network.config.routing}'{setting} has no exact decomposition, for its class capsules are no "
            f"weighted sum of votes; routings that have one: {', '.join(EXACT)}."
        )
    gain, votes = routed.gain[0].detach(), column.vote(routed.voters)[0]
    return _VoteSum(gain, votes, torch.einsum("ij,ijd->jd", gain, votes))


def _scales(
    sums: list[_VoteSum], columns: tuple[ColumnOutput, ...], activation_is_length: bool
) -> tuple[list[Float[Tensor, " parent"]], Quantity]:
    """What each column's s_c is multiplied by in the capsule whose length is divided, and what that length is."""
    if len(columns) == 1:
        return [torch.ones_like(sums[0].value[:, 0])], "length_before_squash" if activation_is_length else "capsule"
    scales: list[Tensor] = []
    for one, made in zip(sums, columns, strict=True):
        before, after = length(one.value).detach(), length(made.routed.parents[0]).detach()
        scales.append(torch.where(before > 0, after / before, 0) / len(columns))
    return scales, "score" if activation_is_length else "capsule"


def _strongest(sent: list[Tensor], most: int) -> list[Tensor]:
    """Of all columns together, the children with the largest credit for any class, as numbers within each column."""
    largest = [children.abs().amax(dim=0) for children in sent]
    order = torch.cat(largest).argsort(descending=True, stable=True)[:most]
    first = 0
    chosen: list[Tensor] = []
    for children in largest:
        chosen.append(order[(order >= first) & (order < first + len(children))] - first)
        first += len(children)
    return chosen


def _check_sum(network: CapsuleNetwork, credit: Tensor, bias: Tensor, total: Tensor) -> None:
    """Parts that do not add up are worse than none: they would look like reasons."""
    size = credit.abs().sum(dim=1) + bias.abs() + total
    if bool(((credit.sum(dim=1) + bias - total).abs() > TOLERANCE * size).any()):
        raise ValueError(
            "the parts do not add up to the class capsules, so something in this network (routing "
            f"'{network.config.routing}') multiplies by numbers that it computes from its input: mark them with "
            "capsroute.capsules.gates.gate."
        )
