"""Labels out are the labels that went in."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capsroute.text import Corpus, LabelError, Labels

NAMES = st.lists(st.text(min_size=1), min_size=2, unique=True)


@given(NAMES, st.data())
def test_what_is_encoded_is_decoded(names: list[str], data: st.DataObject) -> None:
    given_labels = names + data.draw(st.lists(st.sampled_from(names)))
    labels = Labels.of(given_labels)
    numbers = labels.encode(given_labels)
    assert numbers.dtype == torch.int64
    assert labels.decode(numbers) == labels.decode(numbers.numpy()) == labels.decode(numbers.tolist()) == given_labels
    assert len(labels) == len(names)
    assert Labels.from_json(json.loads(json.dumps(labels.to_json()))) == labels


@given(st.lists(st.sets(st.sampled_from(["a", "b", "c"])), min_size=1).filter(any))
def test_several_labels(sets: list[set[str]]) -> None:
    lists = [sorted(labels) for labels in sets]
    labels = Labels.of(lists)
    table = labels.encode(lists)
    assert table.shape == (len(lists), len(labels))
    assert table.is_floating_point()
    assert labels.decode(table) == lists
    assert Labels.from_json(labels.to_json()) == labels


def test_several_labels_take_single_ones_too() -> None:
    labels = Labels.of([["a", "b"], []])
    assert labels.encode(["b", "a"]).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "names",
    [
        ["-1", "0", "0.5", "2", "10"],
        ["1", "5", "10", "a", "b"],
        ["class 2", "class 10"],
        ["a", "B", "c"],
        ["2", "nan"],
    ],
)
def test_natural_order(names: list[str]) -> None:
    assert Labels.of(names[::-1]).names == names


def test_labels_of_a_corpus() -> None:
    corpus = Corpus.of(["x", "y"], ["b", "a"])
    labels = Labels.of(corpus)
    assert labels.encode(corpus).tolist() == [1, 0]
    several = Corpus.of(["x", "y"], [["b", "a"], []])
    assert Labels.of(several).encode(several).tolist() == [[1, 1], [0, 0]]


def test_one_single_label_is_refused() -> None:
    with pytest.raises(LabelError, match="two different labels to tell apart, but all texts have 'a'"):
        Labels.of(["a", "a"])
    with pytest.raises(LabelError, match="but there are none"):
        Labels.of([[], []])
    assert Labels.of([["a"], []]).names == ["a"]


def test_unseen_label_is_told_with_its_row_and_the_nearest_known() -> None:
    labels = Labels.of(["positive", "negative"])
    with pytest.raises(LabelError, match=r"^row 2: unknown label 'postive'; did you mean 'positive'"):
        labels.encode(["negative", "postive"])
    with pytest.raises(LabelError, match=r"^'memory', row 1: unknown label 'x'"):
        labels.encode(Corpus.of(["x"], ["x"]))
    with pytest.raises(LabelError, match=r"^row 2: unknown label 'c'"):
        Labels.of([["a", "b"]]).encode([["a"], ["b", "c"]])


def test_mixed_labels_are_refused() -> None:
    with pytest.raises(LabelError, match="but here are both"):
        Labels.of(["a", ["b"]])  # type: ignore[list-item]
    with pytest.raises(LabelError, match="training saw one label a text"):
        Labels.of(["a", "b"]).encode([["a"]])


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"names": []},
        {"names": ["a", "a"], "several": False},
        {"names": ["a", 1], "several": True},
        {"names": ["a", "b"]},
    ],
)
def test_broken_json_is_refused(stored: dict[str, object]) -> None:
    with pytest.raises(LabelError, match="labels are stored as"):
        Labels.from_json(stored)
