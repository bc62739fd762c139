"""Explanations: what they hold, how they are asked, that a file gives back what it was given, and what is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from capsroute.explain import Explanation, attribute, explain
from capsroute.explain.explanation import WORDS_OF_A_CHILD
from capsroute.model import CapsuleNetwork, NetworkConfig

TEXT = "Grey sky, grey sea."
TOKENS = ["grey", "sky", ",", "grey", "sea", "."]
SPANS = [(0, 4), (5, 8), (8, 9), (10, 14), (15, 18), (18, 19)]
IDS = torch.tensor([[7, 12, 3, 7, 1, 4]])
LABELS = ["land", "sea", "air"]


def network(**changes: Any) -> CapsuleNetwork:
    torch.manual_seed(5)
    sizes: dict[str, Any] = {
        "vocabulary": 20,
        "classes": 3,
        "max_length": 12,
        "word_dim": 6,
        "filters": 8,
        "kinds": 4,
        "dim": 8,
        "children": 5,
    }
    made = CapsuleNetwork(NetworkConfig(**{**sizes, **changes}))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        made.encoder.words.weight[0] = 0
    return made


def explained(made: CapsuleNetwork | None = None, ids: torch.Tensor = IDS, **changes: Any) -> Explanation:
    given: dict[str, Any] = {"text": TEXT, "tokens": TOKENS, "spans": SPANS, "labels": LABELS}
    return explain(made or network(), ids, **{**given, **changes})


@pytest.mark.parametrize("columns", [((3,),), ((3,), (4,))])
def test_an_explanation_holds_what_was_attributed(columns: tuple[tuple[int, ...], ...]) -> None:
    made = network(columns=columns)
    why, credit = explained(made), attribute(made, IDS)
    assert why.text == TEXT
    assert (why.tokens, why.spans, why.labels) == (tuple(TOKENS), tuple(SPANS), tuple(LABELS))
    assert torch.allclose(torch.tensor(why.credit), credit.tokens)
    assert torch.allclose(torch.tensor(why.scores), made(IDS).scores[0])
    for row, bias, total in zip(why.credit, why.bias, why.total, strict=True):
        assert sum(row) + bias == pytest.approx(total, rel=1e-5)
    assert why.predicted == (LABELS[int(credit.scores.argmax())],)
    assert why.children_in_all == 5 * len(columns) == len(why.children)
    for c in range(3):
        assert sum(child.credit[c] for child in why.children) == pytest.approx(why.total[c], rel=1e-5)
    for child in why.children:
        column = credit.columns[child.column]
        assert torch.allclose(torch.tensor(child.credit), column.children[:, child.number])
        assert column.coupling is not None
        assert child.coupling == pytest.approx(column.coupling[child.number].tolist())
        shares = [share for _, share in child.reads]
        assert shares == sorted(shares, reverse=True)
        assert len(shares) <= WORDS_OF_A_CHILD
    strengths = [max(map(abs, child.credit)) for child in why.children]
    assert strengths == sorted(strengths, reverse=True)
    assert why.relation is not None
    for one, row in zip(why.children, why.relation, strict=True):
        for other, weight in zip(why.children, row, strict=True):
            relation = credit.columns[one.column].relation
            assert relation is not None
            same = one.column == other.column
            assert weight == pytest.approx(float(relation[one.number, other.number]) if same else 0)


def test_words_in_order_and_by_strength() -> None:
    why = explained()
    words = why.words("air")
    assert [word.text for word in words] == ["Grey", "sky", ",", "grey", "sea", "."]
    assert [word.credit for word in words] == list(why.credit[2])
    top = why.top("air", 4)
    assert [abs(word.credit) for word in top] == sorted((abs(word.credit) for word in words), reverse=True)[:4]
    assert all(TEXT[word.start : word.stop] == word.text for word in top)
    assert why.top() == why.top(why.shown)
    assert len(why.top(n=100)) == 6
    with pytest.raises(ValueError, match="unknown label 'lamd'; did you mean 'land'"):
        why.top("lamd")


def test_padding_changes_nothing() -> None:
    made = network(compression="none", children=None, votes="shared")
    assert explained(made, torch.nn.functional.pad(IDS, (0, 9))) == explained(made)


def test_empty_text_one_word_and_unknown_words() -> None:
    empty = explained(ids=torch.zeros(1, 0, dtype=torch.int64), text="", tokens=[], spans=[])
    assert (empty.tokens, empty.credit, empty.scores) == ((), ((), (), ()), (0, 0, 0))
    assert empty.top() == []
    spaces = explained(ids=torch.zeros(1, 3, dtype=torch.int64), text=" \n ", tokens=[], spans=[])
    assert spaces.total == (0, 0, 0)
    one = explained(ids=torch.tensor([[5]]), text="sea", tokens=["sea"], spans=[(0, 3)])
    assert one.top()[0].text == "sea"
    unknown = explained(tokens=["[UNK]"] * 6, ids=torch.ones(1, 6, dtype=torch.int64))
    assert unknown.words()[4].text == "sea", "the text's own word, whatever the vocabulary calls it"


def test_the_predicted_labels_may_be_given() -> None:
    assert explained(predicted=["air"]).shown == "air"
    assert explained(predicted=[]).predicted == ()
    several = explained(predicted=["land", "air"])
    assert several.shown == max(("land", "air"), key=lambda label: several.scores[LABELS.index(label)])


def test_fewer_children() -> None:
    why, whole = explained(children=2), explained()
    assert why.children == whole.children[:2]
    assert why.children_in_all == 5
    assert why.relation is not None
    assert len(why.relation) == 2


@pytest.mark.parametrize("changes", [{}, {"routing": "dynamic"}, {"columns": ((3,), (4,))}])
def test_json_gives_back_what_it_was_given(changes: dict[str, Any]) -> None:
    why = explained(network(**changes), text="Grey\tsky, grey \ud800ea😀")
    assert Explanation.from_json(json.loads(json.dumps(why.to_json()))) == why
    assert Explanation.from_json(why.to_json()) == why


def test_what_is_no_explanation_is_refused() -> None:
    values = explained().to_json()
    with pytest.raises(ValueError, match="unknown field of an explanation 'lables'; did you mean 'labels'"):
        Explanation.from_json({**values, "lables": []})
    del values["bias"]
    with pytest.raises(ValueError, match="this is no whole explanation: it has no 'bias'"):
        Explanation.from_json(values)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tokens": TOKENS[:5]}, "there are 6 numbers, 5 tokens and 6 spans"),
        ({"spans": SPANS[:5]}, "there are 6 numbers, 6 tokens and 5 spans"),
        ({"spans": [*SPANS[:5], (18, 30)]}, r"but \(18, 30\) is not: the text has 19 characters"),
        ({"spans": [*SPANS[:5], (2, 3)]}, r"but \(2, 3\) is not: .* the span before starts at 15"),
        ({"labels": LABELS[:2]}, "labels must be 3 different names"),
        ({"labels": ["a", "b", "a"]}, "labels must be 3 different names"),
        ({"predicted": ["see"]}, "unknown label 'see'; did you mean 'sea'"),
        ({"children": -1}, "readers must be at least 0"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        explained(**changes)


def test_a_score_that_no_words_make_is_not_explained() -> None:
    with pytest.raises(ValueError, match=r"the scores of routing 'em' are no sum.*: graph, dynamic"):
        explained(network(routing="em"))
    with pytest.raises(ValueError, match="routing 'max' has no exact decomposition"):
        explained(network(routing="max"))


def test_an_explanation_is_frozen_and_compares() -> None:
    why = explained()
    assert why == explained()
    assert replace(why, text="Grey sky, grey see.") != why
    with pytest.raises(AttributeError):
        why.text = "other"  # pyright: ignore
