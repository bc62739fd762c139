"""What else comes with credit: children and what they read, a network left as it is, and what has no exact credit."""

from typing import Any

import pytest
import torch

from capsroute.capsules.squash import length
from capsroute.explain import EXACT, attribute
from capsroute.routing import ROUTINGS
from tests.test_explain_attribution import IDS, LOOSE, gates_replaced, network, off


def test_the_relation_couplings_and_children_are_those_of_the_pass() -> None:
    made = network(columns=((3,), (4,)), orphan=True)
    credit, output = attribute(made, IDS), made(IDS)
    for column, computed in zip(credit.columns, output.columns, strict=True):
        assert computed.routed.coupling is not None
        assert computed.routed.relation is not None
        assert column.coupling is not None
        assert column.relation is not None
        assert torch.allclose(column.coupling, computed.routed.coupling[0, :, :3], rtol=1e-12), "without the orphan"
        assert torch.allclose(column.relation, computed.routed.relation[0], rtol=1e-12)
        assert not column.relation.requires_grad
        assert not column.coupling.requires_grad
    assert credit.scores.shape == (3,)
    assert attribute(network(routing="mean"), IDS).columns[0].relation is None


def test_a_child_reads_the_words_of_its_window_only() -> None:
    made = network(**LOOSE, routing="dynamic")
    column = attribute(made, IDS, readers=100).columns[0]
    spans = made.encoder(IDS)[0].spans
    assert len(column.readers) == column.children.shape[1] == 4 * len(spans)
    assert torch.allclose(column.reading.sum(1), torch.ones(len(column.readers), dtype=torch.float64))
    for child, row in zip(column.readers.tolist(), column.reading, strict=True):
        start, stop = spans[child // 4].tolist()
        outside = torch.ones(9, dtype=torch.bool)
        outside[start:stop] = False
        assert not row[outside].any()
        assert row[~outside].all()


def test_the_children_with_the_most_credit_are_read() -> None:
    credit = attribute(network(columns=((3,), (4,))), IDS, readers=4)
    largest = torch.cat([column.children.abs().amax(0) for column in credit.columns])
    read = torch.cat([column.readers + 5 * number for number, column in enumerate(credit.columns)])
    assert len(read) == 4
    assert set(read.tolist()) == set(largest.argsort(descending=True)[:4].tolist())
    assert all(not len(column.readers) for column in attribute(network(), IDS, readers=0).columns)


def test_the_network_is_left_as_it_is() -> None:
    made = network(dropout=0.5)
    quiet = attribute(made, IDS)
    made.train()
    made.encoder.words.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in made.state_dict().items()}
    with torch.inference_mode():
        again = attribute(made, IDS)
    assert torch.equal(again.tokens, quiet.tokens), "as in evaluation, without dropout, whatever the caller's mode"
    assert made.training
    assert not made.encoder.words.weight.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in made.state_dict().items())
    assert all(parameter.grad is None for parameter in made.parameters())
    assert not again.tokens.requires_grad


def test_repeated_words_have_their_own_credit() -> None:
    credit = attribute(network(), torch.tensor([[9, 9, 9, 9, 9]]))
    assert off(credit) < 1e-10
    assert len(set(credit.tokens[0].tolist())) == 5, "positional compression tells the places apart"


def test_a_class_capsule_of_length_zero_has_no_credit() -> None:
    made = network(routing="sum")
    with torch.no_grad():
        made.columns[0].vote.weight[:, 1] = 0
        made.columns[0].vote.bias[:, 1] = 0
    credit = attribute(made, IDS)
    assert credit.total[1] == credit.bias[1] == 0
    assert not credit.tokens[1].any()
    assert credit.total[0] > 0


@pytest.mark.parametrize("columns", [((3,),), ((3,), (4,))])
def test_em_divides_its_capsule_and_says_so(columns: tuple[tuple[int, ...], ...]) -> None:
    made = network(routing="em", columns=columns)
    credit = attribute(made, IDS)
    assert credit.quantity == "capsule"
    assert off(credit) < 1e-10
    assert torch.allclose(credit.total, length(made(IDS).parents)[0])


def test_the_list_of_exact_routings_is_true() -> None:
    found = []
    for name in ROUTINGS:
        made = network(routing=name)
        if made(IDS).columns[0].routed.gain is not None and made.columns[0].routing.activation_is_length:
            found.append(name)
    assert sorted(found) == sorted(EXACT)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"routing": "max"}, "routing 'max' has no exact decomposition.*that have one: graph, dynamic"),
        ({"routing": "transformer"}, "routing 'transformer' has no exact decomposition"),
        (
            {"routing_options": {"aggregate": "after_transformed"}},
            "routing 'graph' with aggregate='after_transformed' has no exact decomposition",
        ),
    ],
)
def test_routings_without_a_sum_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        attribute(network(**changes), IDS)


def test_bad_input_is_refused() -> None:
    made = network()
    for ids, sentence in (
        (torch.ones(2, 3, dtype=torch.int64), r"ids must have the shape \[batch=1, token\], but has \[2, 3\]"),
        (torch.ones(1, 3), "ids must be int64 or int32"),
        (torch.tensor([[1, 40]]), "ids must be numbers from 0 to 39"),
        (torch.tensor([[-1, 4]]), "ids must be numbers from 0 to 39"),
    ):
        with pytest.raises(ValueError, match=sentence):
            attribute(made, ids)
    with pytest.raises(ValueError, match="readers must be at least 0"):
        attribute(made, IDS, readers=-1)
    assert torch.equal(attribute(made, IDS.int()).tokens, attribute(made, IDS).tokens)


def test_a_forgotten_gate_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that do not add up are never returned."""
    with (
        gates_replaced(monkeypatch, lambda values: values),
        pytest.raises(ValueError, match="the parts do not add up"),
    ):
        attribute(network(routing="dynamic"), IDS)
