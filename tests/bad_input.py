"""What a user may do wrong at every entrance, and the sentence that each mistake gets.

Run as a program, without the checker of annotations of the test run, which would come first; see test_bad_input.py.
"""

import json
import sys
from collections.abc import Callable

import numpy as np
import torch

from capsroute import BagOfNgrams, CapsuleNetwork, NetworkConfig, TextCnn, make_loss, make_routing
from capsroute.capsules import (
    PrimaryCapsules,
    distance_matrix,
    make_compression,
    make_votes,
    relation,
    row_entropy,
    squash,
)
from capsroute.model import ConvolutionConfig

SIZES = {"children": 5, "parents": 3, "dim": 4}
U = torch.linspace(-1, 1, 40).view(2, 5, 4)
VOTE = make_votes("unshared", **SIZES)
ONES = torch.ones(2, 5, 3, 4)
NETWORK = {
    "vocabulary": 20,
    "classes": 3,
    "word_dim": 4,
    "filters": 4,
    "kinds": 2,
    "dim": 4,
    "children": 3,
    "max_length": 8,
}
COMPRESSION = {"children": 5, "positions": 6, "kinds": 2, "features": 4}
IDS = torch.tensor([[1, 2, 3]])
A = torch.full((2, 3), 0.5)
NAN, INFINITE = float("nan"), float("inf")


def routing(name="graph", **changes):
    return make_routing(name, **{**SIZES, **changes})


def votes(kind="unshared", **changes):
    return make_votes(kind, **{**SIZES, **changes})


def compression(kind="pooled", **changes):
    return make_compression(kind, **{**COMPRESSION, **changes})


def network(**changes):
    return CapsuleNetwork(NetworkConfig(**{**NETWORK, **changes}))


def json_network(**changes):
    return NetworkConfig.from_json({**NETWORK, **changes})


def loss(targets, activation=A, name="margin", **options):
    return make_loss(name, **options)(activation, targets)


def sizes(make: Callable, *names: str) -> dict[str, Callable[[], object]]:
    """Each size in turn as zero, as a fraction and as a word."""
    refused = {}
    for name in names:
        for value in (0, 2.5, "3"):
            refused[f"{name} must be <> at least 1, but is {value!r}"] = lambda n=name, v=value: make(**{n: v})
    return refused


CASES: dict[str, dict[str, Callable[[], object]]] = {
    "make_routing": {
        **sizes(routing, "children", "parents", "dim", "iterations"),
        "iterations must be a whole number of at least 1, but is True": lambda: routing(iterations=True),
        "leak must be a finite number, but is nan": lambda: routing("leaky", leak=NAN),
        "leak must be a finite number, but is inf": lambda: routing("leaky", leak=INFINITE),
        "amend must be True or False, but is 'False'": lambda: routing("dynamic", amend="False"),
        "amend must be True or False, but is 'no'": lambda: routing("leaky", amend="no"),
        "attention (unless it is a module) must be True or False, but is 1": lambda: routing(attention=1),
        "temperature must be a finite number, but is None": lambda: routing(temperature=None),
        "temperature must be greater than 0, but is -1": lambda: routing("gcn", temperature=-1),
        "tolerance must be a finite number, but is inf": lambda: routing("adaptive_kde", tolerance=INFINITE),
        "inverse_temperature must be a finite number": lambda: routing("em", inverse_temperature=INFINITE),
        "unknown distance \"['cosine']\"": lambda: routing(distance=["cosine"]),
        "unknown normalisation '3'": lambda: routing(normalisation=3),
        "unknown routing None": lambda: routing(None),
        "heads must be a whole number of at least 1, but is 1.5": lambda: routing("transformer", heads=1.5),
        "wide must be at least 1, but is 0": lambda: routing("transformer", wide=0),
    },
    "routing": {
        "children must be a Tensor, but is a ndarray": lambda: routing()(U.numpy(), VOTE),
        "children must have the shape [batch, child=5, dim=4], but has [2, 5, 7]": lambda: routing()(
            torch.ones(2, 5, 7), VOTE
        ),
        "children must have the shape [batch, child=5, dim=4], but has [2, 5, 6]": lambda: routing("transformer")(
            torch.ones(2, 5, 6), None
        ),
        "children must have the dtype of the weights of GraphRouting, torch.float32": lambda: routing()(
            U.double(), VOTE
        ),
        "children must have the dtype of the weights of UnsharedVote, torch.float32": lambda: routing("dynamic")(
            U.double(), VOTE
        ),
        "children must be floating point, but have the dtype torch.complex64": lambda: routing()(
            U.to(torch.complex64), VOTE
        ),
        "children must be finite": lambda: routing()(U * INFINITE, VOTE),
        "mask must be a Tensor, but is a list": lambda: routing()(U, VOTE, [[True] * 5] * 2),
        "vote must be a module from children to votes, but is 5": lambda: routing()(U, 5),
        "votes must have the dtype of the children, torch.float32, but have torch.float64": lambda: routing()(
            U, lambda _: ONES.double()
        ),
        "votes must be a Tensor, but is a ndarray": lambda: routing()(U, lambda _: ONES.numpy()),
        "votes must have the shape [batch=2, child=5, parent=3, dim=4]": lambda: routing()(U, lambda _: ONES[:, :4]),
    },
    "make_votes": {
        **sizes(votes, "children", "parents", "dim"),
        "rank must be a whole number of at least 1, but is 2.5": lambda: votes("low_rank", rank=2.5),
        "children must have the shape [batch, child=5, dim=4], but has [2, 4, 4]": lambda: VOTE(U[:, :4]),
        "children must have the shape [batch, child=5, dim=4], but has [5, 4]": lambda: VOTE(U[0]),
        "children must have the shape [batch, child, dim=4], but has [2, 5, 3]": lambda: votes("shared")(U[:, :, :3]),
        "children must have the shape [batch, child=5, dim=4], but has [2, 3, 4]": lambda: votes("low_rank", rank=2)(
            U[:, :3]
        ),
        "children must have the dtype of the weights of UnsharedVote": lambda: VOTE(U.double()),
        "children must be floating point, but have the dtype torch.int64": lambda: VOTE(U.long()),
    },
    "make_compression": {
        **sizes(compression, "children", "positions", "kinds", "features"),
        "capsule_length must be greater than 0, but is 0": lambda: compression(capsule_length=0),
        "capsule_length must be a finite number, but is nan": lambda: compression(capsule_length=NAN),
    },
    "capsules": {
        **sizes(lambda **size: PrimaryCapsules(**{"features": 4, "kinds": 2, "dim": 3, **size}), "features", "kinds"),
        "unknown squash 'sabor'": lambda: PrimaryCapsules(features=4, kinds=2, dim=3, squash="sabor"),
        "features must have the shape [batch, position, feature=4]": lambda: PrimaryCapsules(
            features=4, kinds=2, dim=3
        )(torch.ones(2, 5, 3), torch.ones(2, 5, dtype=torch.bool)),
        "children must have the shape [batch, child, dim], but has [5, 4]": lambda: distance_matrix(U[0]),
        "children must be floating point": lambda: distance_matrix(U.long()),
        "distances must have the shape [batch, child, other=5], but has [2, 5, 4]": lambda: relation(U),
        "mask must have the shape [batch=2, child=4], but has [2, 5]": lambda: relation(
            torch.ones(2, 4, 4), mask=torch.ones(2, 5, dtype=torch.bool)
        ),
        "weights must have the shape [batch, child, other": lambda: row_entropy(torch.eye(5)),
        "x must be floating point, but has the dtype torch.int64": lambda: squash(torch.tensor([1, 2])),
        "x must be a Tensor, but is a list": lambda: squash([1.0, 2.0]),
    },
    "CapsuleNetwork": {
        **sizes(network, "classes", "max_length", "children", "kinds", "dim", "filters", "word_dim", "stride"),
        "config must be a NetworkConfig, but is a dict": lambda: CapsuleNetwork(NETWORK),
        "vocabulary must be a whole number of at least 2, but is 20.5": lambda: network(vocabulary=20.5),
        "columns must name at least one n-gram width each, as in ((3,), (4,)), but are (3,)": lambda: network(
            columns=(3,)
        ),
        "columns must name at least one n-gram width each, as in ((3,), (4,)), but are ()": lambda: network(
            columns=()
        ),
        "an n-gram width must be a whole number of at least 2, but is 2.5": lambda: network(columns=((2.5,),)),
        "an n-gram width must be at least 2, but is 1": lambda: network(columns=((1,),)),
        "1 - dropout must be greater than 0, but is 0": lambda: network(dropout=1.0),
        "dropout must be a finite number, but is nan": lambda: network(dropout=NAN),
        "orphan must be True or False, but is 'no'": lambda: network(orphan="no"),
        "unknown squash 'x'": lambda: network(squash="x"),
        "unknown compression 'pool'; did you mean 'pooled'": lambda: network(compression="pool"),
        "convolution must be a ConvolutionConfig, but is a dict": lambda: network(convolution={"width": 3}),
        "width of the convolution must be at least 1, but is 0": lambda: network(
            convolution=ConvolutionConfig(width=0)
        ),
        "routing_options hold dim, parents, which the network itself sets": lambda: network(
            routing_options={"parents": 3, "dim": 2}
        ),
        "unknown setting of a convolution 'widht'; did you mean 'width'": lambda: json_network(
            convolution={"widht": 3}
        ),
        "unknown setting of a network 'clases'; did you mean 'classes'": lambda: json_network(clases=3),
        "the settings of a network must hold vocabulary, but hold: classes": lambda: NetworkConfig.from_json(
            {"classes": 3}
        ),
        "ids must lie between 0 and 19, for a vocabulary of 20, but lie between 1 and 20": lambda: network()(
            torch.tensor([[1, 20]])
        ),
        "but lie between -1 and 1": lambda: network()(torch.tensor([[1, -1]])),
        "ids must be a Tensor, but is a list": lambda: network()([[1, 2]]),
        "ids must have the shape [batch, token], but has [3]": lambda: network()(IDS[0]),
        "ids must be int64 or int32 token numbers, but have the dtype torch.float32": lambda: network()(IDS.float()),
    },
    "baselines": {
        "ids must lie between 0 and 9": lambda: TextCnn(vocabulary=10, classes=2)(IDS * 4),
        "ids must lie between 0 and 9, for a vocabulary of 10, but": lambda: BagOfNgrams(vocabulary=10, classes=2)(
            IDS * 4
        ),
        "widths must name at least one n-gram width, as in (3, 4), but are ()": lambda: TextCnn(
            vocabulary=10, classes=2, widths=()
        ),
        "1 - dropout must be greater than 0": lambda: TextCnn(vocabulary=10, classes=2, dropout=1.0),
        "ngrams must be at least 1, but is 0": lambda: BagOfNgrams(vocabulary=10, classes=2, ngrams=0),
    },
    "losses": {
        "activation must be a Tensor, but is a ndarray": lambda: loss(torch.tensor([0, 1]), np.ones((2, 3))),
        "targets must be a Tensor, but is a list": lambda: loss([0, 1]),
        "activation must have the shape [batch, parent], but has [3]": lambda: loss(torch.tensor([0]), A[0]),
        "activation must be floating point": lambda: loss(torch.tensor([0, 1]), A.long()),
        "activation must hold at least one text": lambda: loss(torch.tensor([0])[:0], A[:0]),
        "targets must lie between 0 and 2, as activation has 3 classes, but lie between 0 and 3": lambda: loss(
            torch.tensor([0, 3])
        ),
        "but lie between -100 and 0": lambda: loss(torch.tensor([0, -100]), name="cross_entropy"),
        "targets with a column for each class must hold zeros and ones": lambda: loss(A.new_full((2, 3), 0.5)),
        "targets with a column for each class must hold zeros and ones, but": lambda: loss(
            A * NAN, name="binary_cross_entropy"
        ),
        "scale must be a finite number, but is inf": lambda: make_loss("cross_entropy", scale=INFINITE),
        "scale must be a finite number, but is '3'": lambda: make_loss("focal", scale="3"),
        "positive must be a finite number, but is nan": lambda: make_loss("margin", positive=NAN),
        "unknown loss None": lambda: make_loss(None),
    },
}


def what_comes(act: Callable[[], object]) -> str:
    """The type and the sentence of what an act raises."""
    try:
        act()
    except Exception as error:  # whatever it is, it is what a user would see
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


if __name__ == "__main__":
    given = {place: {text: what_comes(act) for text, act in acts.items()} for place, acts in CASES.items()}
    sys.stdout.write(json.dumps(given))
