"""An explanation: one text, what the network said of it, and the words and children that made it say so.

>>> import torch
>>> from capsroute.model import CapsuleNetwork, NetworkConfig
>>> network = CapsuleNetwork(NetworkConfig(vocabulary=9, classes=2, word_dim=8, kinds=4, dim=8, children=6))
>>> why = explain(network, torch.tensor([[3, 1, 4]]), text="Rain, then sun", tokens=["rain", "then", "sun"],
...               spans=[(0, 4), (6, 10), (11, 14)], labels=["dull", "bright"])
>>> len(why.top(n=2)), why.predicted[0] in why.labels, Explanation.from_json(why.to_json()) == why
(2, True, True)
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from capsroute.checks import has_shape, one_of, unknown
from capsroute.encoders.base import PADDING
from capsroute.explain.attribution import EXACT, Credit, Quantity, attribute
from capsroute.model import CapsuleNetwork

if TYPE_CHECKING:
    from capsroute.explain.terminal import TerminalView

Numbers = tuple[float, ...]
WORDS_OF_A_CHILD = 8


class Word(NamedTuple):
    """One word at one place of the text, and its credit for one class."""

    token: int  # its number among the tokens
    text: str  # as the text writes it
    start: int
    stop: int
    credit: float


@dataclass(frozen=True)
class Child:
    """A child capsule: what it read and what it sent to each class."""

    column: int
    number: int  # within its column
    credit: Numbers  # by class
    coupling: Numbers | None  # share of it that each class received, where the routing has one
    reads: tuple[tuple[int, float], ...]  # (token, share), the largest share first


@dataclass(frozen=True)
class Explanation:
    """Why a network gave a text its scores. For each class c

        total[c] = sum(credit[c]) + bias[c] = sum of child.credit[c] over all children, the left out ones included

    and the score is the squash of `total[c]`, or with several columns `total[c]` itself (`quantity`).

    Args:
        spans: characters [start, stop) of the text that each token was read from.
        predicted: the label that was predicted; none or several where a text may have several.
        children: those with the most credit, the strongest first; `children_in_all` counts the others too.
        relation: weights of the graph between `children`, in their order; None without a graph.
    """

    text: str
    tokens: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    labels: tuple[str, ...]
    scores: Numbers
    predicted: tuple[str, ...]
    routing: str
    quantity: Quantity
    total: Numbers
    credit: tuple[Numbers, ...]
    bias: Numbers
    children: tuple[Child, ...]
    children_in_all: int
    relation: tuple[Numbers, ...] | None

    @property
    def shown(self) -> str:
        """The label that is explained unless another is asked for: the predicted one with the highest score."""
        score = dict(zip(self.labels, self.scores, strict=True))
        return max(self.predicted or self.labels, key=lambda label: score[label])

    def index(self, label: str | None = None) -> int:
        """The number of a class; of the shown one for None."""
        name = self.shown if label is None else label
        one_of("label", name, self.labels)
        return self.labels.index(name)

    def words(self, label: str | None = None) -> list[Word]:
        """All words in the order of the text."""
        credit = self.credit[self.index(label)]
        return [
            Word(token, self.text[start:stop], start, stop, credit[token])
            for token, (start, stop) in enumerate(self.spans)
        ]

    def top(self, label: str | None = None, n: int = 10) -> list[Word]:
        """The words with the largest credit for or against a class, the largest first."""
        return sorted(self.words(label), key=lambda word: -abs(word.credit))[:n]

    def to_json(self) -> dict[str, Any]:
        """The explanation as plain values, for json.dumps."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Explanation":
        """The explanation that `to_json` wrote, before or after a walk through a file."""
        names = [field.name for field in fields(cls)]
        for name in values:
            if name not in names:
                raise unknown("field of an explanation", name, names)
        for name in names:
            if name not in values:
                raise ValueError(f"this is no whole explanation: it has no {name!r}.")
        plain = {name: _tuples(value) for name, value in values.items() if name != "children"}
        children = tuple(
            Child(**{name: _tuples(value) for name, value in child.items()}) for child in values["children"]
        )
        return cls(**plain, children=children)

    def __str__(self) -> str:
        from capsroute.explain.terminal import as_text

        return as_text(self)

    def __rich__(self) -> "TerminalView":
        from capsroute.explain.terminal import TerminalView

        return TerminalView(self)

    def _repr_html_(self) -> str:
        from capsroute.explain.page import html_fragment

        return html_fragment(self)


def explain(
    network: CapsuleNetwork,
    ids: Tensor,
    *,
    text: str,
    tokens: Sequence[str],
    spans: Sequence[tuple[int, int]],
    labels: Sequence[str],
    predicted: Sequence[str] | None = None,
    children: int = 64,
) -> Explanation:
    """Explain what a network says of one text.

    Args:
        ids: the text's token numbers, [1, token]; padding behind them has no tokens and spans.
        labels: the name of each class.
        predicted: the labels that were predicted; None: the one with the highest score.
        children: how many to show, those with the most credit; each costs a backward pass.
    """
    has_shape("ids", ids, batch=1, token=None)
    there = [place + 1 for place, token in enumerate(ids[0].tolist()) if token != PADDING]  # pyright: ignore
    count = max(there, default=0)
    _check_tokens(text, tokens, spans, count)
    credit = attribute(network, ids[:, :count], readers=children)
    if credit.quantity == "capsule":
        raise ValueError(
            f"the scores of routing '{network.config.routing}' are no sum of what words sent, so no credit of words "
            f"explains them; routings that can be explained: {', '.join(EXACT)}."
        )
    scores = _plain(credit.scores)
    names = tuple(labels)
    if len(names) != len(scores) or len(set(names)) != len(names):
        raise ValueError(f"labels must be {len(scores)} different names, one a class, but are {list(names)}.")
    said = (names[scores.index(max(scores))],) if predicted is None else tuple(predicted)
    for label in said:
        one_of("label", label, names)
    shown, relation = _children(credit, count)
    return Explanation(
        text=text,
        tokens=tuple(tokens),
        spans=tuple((start, stop) for start, stop in spans),
        labels=names,
        scores=scores,
        predicted=said,
        routing=network.config.routing,
        quantity=credit.quantity,
        total=_plain(credit.total),
        credit=tuple(_plain(row) for row in credit.tokens[:, :count]),
        bias=_plain(credit.bias),
        children=shown,
        children_in_all=sum(column.children.shape[1] for column in credit.columns),
        relation=relation,
    )


def _check_tokens(text: str, tokens: Sequence[str], spans: Sequence[tuple[int, int]], count: int) -> None:
    if not len(tokens) == len(spans) == count:
        raise ValueError(
            f"every token number needs its token and its span, but there are {count} numbers, {len(tokens)} tokens "
            f"and {len(spans)} spans."
        )
    before = 0
    for start, stop in spans:
        if not before <= start <= stop <= len(text):
            raise ValueError(
                f"spans must be characters (start, stop) of the text, in its order, but ({start}, {stop}) is not: "
                f"the text has {len(text)} characters and the span before starts at {before}."
            )
        before = start


def _children(credit: Credit, count: int) -> tuple[tuple[Child, ...], tuple[Numbers, ...] | None]:
    """The children whose reading is known, the strongest first, and the graph between them."""
    found: list[tuple[float, Child]] = []
    for number, column in enumerate(credit.columns):
        for child, reading in zip(_whole(column.readers), column.reading[:, :count], strict=True):
            strength, order = reading.sort(descending=True, stable=True)
            reads = zip(_whole(order), _plain(strength), strict=True)
            sent = _plain(column.children[:, child])
            coupling = None if column.coupling is None else _plain(column.coupling[child])
            kept = tuple((token, share) for token, share in reads if share > 0)[:WORDS_OF_A_CHILD]
            found.append((max(abs(part) for part in sent), Child(number, child, sent, coupling, kept)))
    children = tuple(child for _, child in sorted(found, key=lambda pair: -pair[0]))
    return children, _relation(credit, children)


def _relation(credit: Credit, children: tuple[Child, ...]) -> tuple[Numbers, ...] | None:
    """The graph between these children; those of different columns do not read each other."""
    whole = credit.tokens.new_zeros(len(children), len(children))
    for number, column in enumerate(credit.columns):
        if column.relation is None:
            return None
        places = [place for place, child in enumerate(children) if child.column == number]
        at = torch.tensor(places, dtype=torch.int64, device=whole.device)
        which = torch.tensor([children[place].number for place in places], dtype=torch.int64, device=whole.device)
        whole[at[:, None], at] = column.relation[which[:, None], which]
    return tuple(_plain(row) for row in whole)


def _plain(numbers: Tensor) -> Numbers:
    return tuple(numbers.to("cpu", torch.float64).tolist())  # pyright: ignore


def _whole(numbers: Tensor) -> tuple[int, ...]:
    return tuple(numbers.tolist())  # pyright: ignore


def _tuples(value: object) -> Any:
    """JSON has lists where the explanation has tuples."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple) else value  # pyright: ignore
