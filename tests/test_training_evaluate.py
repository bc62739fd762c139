"""Scores come back in the order of the input, and measures are those of scikit-learn."""

import numpy as np
import pytest
import sklearn.metrics as reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from capsroute.training import predict
from capsroute.training.evaluate import evaluate
from capsroute.training.losses import make_loss
from capsroute.training.metrics import (
    accuracy,
    confusion_matrix,
    expected_calibration_error,
    f1_of_classes,
    macro_f1,
    micro_f1,
)
from tests.test_training_data import MemoryBatches, batches_of, texts, tiny_network

labels = st.integers(2, 6).flatmap(
    lambda classes: st.tuples(
        st.just(classes),
        st.lists(st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)), min_size=1, max_size=30),
    )
)


def test_scores_are_in_the_order_of_the_input() -> None:
    network, (ids, targets) = tiny_network().eval(), texts(30)
    expected = network(ids).scores.detach().numpy()
    for seed in (0, 1):  # in whatever order the batches come
        scores = predict(network, MemoryBatches(ids, targets, seed=seed, batch_size=7))
        np.testing.assert_allclose(scores, expected, rtol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_predicting_leaves_the_network_as_it_was(training: bool) -> None:
    network = tiny_network().train(training)
    scores = predict(network, batches_of(20))
    assert np.array_equal(scores, predict(network, batches_of(20)))  # no dropout
    assert network.training == training
    assert network(texts(2)[0]).scores.requires_grad


def test_nothing_to_predict_or_evaluate() -> None:
    ids, targets = texts(4)
    with pytest.raises(ValueError, match="no texts to predict"):
        predict(tiny_network(), MemoryBatches(ids[:0], targets[:0]))
    with pytest.raises(ValueError, match="no texts to evaluate on"):
        evaluate(tiny_network(), [], loss=make_loss("margin"))


def test_the_loss_is_the_mean_over_texts_not_over_batches() -> None:
    network, (ids, targets) = tiny_network().eval(), texts(10)
    loss = make_loss("margin")
    measures = evaluate(network, MemoryBatches(ids, targets, batch_size=9).epoch(1), loss=loss)
    assert measures.loss == pytest.approx(loss(network(ids).activation, targets).item(), rel=1e-5)


@given(labels)
def test_measures_of_one_label(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    classes, pairs = drawn
    targets, predicted = np.array(pairs).T
    assert accuracy(targets, predicted) == pytest.approx(reference.accuracy_score(targets, predicted))
    assert micro_f1(targets, predicted) == pytest.approx(reference.f1_score(targets, predicted, average="micro"))
    expected = reference.f1_score(targets, predicted, average="macro", zero_division=0)
    assert macro_f1(targets, predicted, classes=classes) == pytest.approx(expected)
    table = reference.confusion_matrix(targets, predicted, labels=range(classes))
    assert np.array_equal(confusion_matrix(targets, predicted, classes=classes), table)


@given(st.lists(st.tuples(*[st.tuples(st.booleans(), st.booleans())] * 4), min_size=1, max_size=20))
def test_measures_of_several_labels(drawn: list[tuple[tuple[bool, bool], ...]]) -> None:
    targets, predicted = np.array(drawn).astype(np.float32).transpose(2, 0, 1)
    assert accuracy(targets, predicted) == pytest.approx(reference.accuracy_score(targets, predicted))
    expected = reference.f1_score(targets, predicted, average="micro", zero_division=0)
    assert micro_f1(targets, predicted) == pytest.approx(expected)
    each = f1_of_classes(targets, predicted, classes=4)
    occurs = (targets + predicted).any(axis=0)
    assert np.array_equal(np.isnan(each), ~occurs)
    of_each = reference.f1_score(targets, predicted, average=None, zero_division=0)
    np.testing.assert_allclose(each[occurs], of_each[occurs])
    assert macro_f1(targets, predicted, classes=4) == pytest.approx(of_each[occurs].mean() if occurs.any() else 0)


def test_calibration_error_is_that_of_scikit_learns_curve() -> None:
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet([0.5] * 4, size=400)
    probabilities[:3] = [0.2, 0.8, 0, 0]  # on the edge between two bins
    targets = generator.integers(0, 4, 400)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == targets
    share_right, mean_confidence = calibration_curve(right, confidence, n_bins=10)
    inside = np.bincount(np.searchsorted(np.linspace(0, 1, 11)[1:-1], confidence))
    expected = (np.abs(share_right - mean_confidence) * inside[inside > 0]).sum() / 400
    assert expected_calibration_error(probabilities, targets, bins=10) == pytest.approx(expected)


def test_calibration_error_of_extremes() -> None:
    sure = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert expected_calibration_error(sure, np.array([0, 0])) == 0
    assert expected_calibration_error(sure, np.array([1, 1])) == 1
    with pytest.raises(ValueError, match="divide scores by their sum"):
        expected_calibration_error(sure * 2, np.array([1, 1]))


def test_measures_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"shape of the targets, \[2\], but have \[3\]"):
        accuracy(np.array([0, 1]), np.array([0, 1, 1]))
    with pytest.raises(ValueError, match="classes must be at least 4"):
        confusion_matrix(np.array([0, 3]), np.array([0, 1]), classes=3)
    with pytest.raises(ValueError, match="no texts to measure on"):
        accuracy(np.array([], dtype=np.int64), np.array([], dtype=np.int64))


def test_several_labels_are_decided_at_a_half() -> None:
    network, (ids, _) = tiny_network().eval(), texts(10)
    table = (network(ids).scores >= 0.5).float()
    measures = evaluate(network, MemoryBatches(ids, table).epoch(1), loss=make_loss("margin"))
    assert (measures.accuracy, measures.micro_f1) == (1, 1 if table.any() else 0)
    assert torch.is_grad_enabled()
