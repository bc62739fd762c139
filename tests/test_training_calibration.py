"""Sharpness: the best by log loss, harmless to rankings, kept with a model."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.metrics import log_loss

from capsroute import CapsuleClassifier
from capsroute.store import StoreError
from capsroute.training.calibration import LARGEST, SMALLEST, fit_sharpness, probabilities
from capsroute.training.metrics import expected_calibration_error

Scores = np.ndarray


def lengths(seed: int, texts: int = 400, classes: int = 4, truth: float = 9.0) -> tuple[Scores, Scores]:
    """Scores between 0 and 1, and labels drawn from the probabilities that a sharpness of `truth` gives them."""
    random = np.random.default_rng(seed)
    scores = random.uniform(0, 1, (texts, classes))
    return scores, np.array([random.choice(classes, p=row) for row in probabilities(scores, truth)])


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 6))
@settings(max_examples=20, deadline=None)
def test_it_is_the_minimum_that_scipy_finds(seed: int, classes: int) -> None:
    scores, targets = lengths(seed, classes=classes)
    found = fit_sharpness(scores, targets)
    best = minimize_scalar(
        lambda s: log_loss(targets, probabilities(scores, s), labels=range(classes)),
        bounds=(0.01, 100),
        method="bounded",
    )
    assert found == pytest.approx(best.x, rel=1e-3)


def test_what_it_makes_is_calibrated() -> None:
    scores, targets = lengths(0, texts=4000)
    new, right = lengths(1, texts=4000)
    before = expected_calibration_error(new / new.sum(axis=1, keepdims=True), right)
    after = expected_calibration_error(probabilities(new, float(fit_sharpness(scores, targets))), right)
    assert before > 0.2
    assert after < 0.03


@given(seed=st.integers(0, 100), sharpness=st.floats(SMALLEST, LARGEST))
@settings(max_examples=30, deadline=None)
def test_rankings_stay_and_rows_sum_to_one(seed: int, sharpness: float) -> None:
    scores, _ = lengths(seed, texts=20)
    found = probabilities(scores, sharpness)
    assert np.isfinite(found).all()
    assert np.allclose(found.sum(axis=1), 1)
    assert (found.argmax(axis=1) == scores.argmax(axis=1)).all()


def test_all_right_or_all_wrong_ends_at_a_bound() -> None:
    scores = np.array([[0.9, 0.1]] * 5)
    assert fit_sharpness(scores, np.zeros(5, dtype=int)) == pytest.approx(LARGEST)
    assert fit_sharpness(scores, np.ones(5, dtype=int)) == pytest.approx(SMALLEST)


TEXTS = ["a lovely film", "a dull film", "bright and fine", "sad and broken"] * 10
NAMES = ["good", "bad", "good", "bad"] * 10


@pytest.mark.parametrize("network", ["capsule", "textcnn"])
def test_a_model_keeps_it(network: str, tmp_path: Path) -> None:
    model = CapsuleClassifier(network=network, settings={"epochs": 2}).fit(TEXTS, NAMES)
    model.save_pretrained(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["sharpness"] > 0
    loaded = CapsuleClassifier.from_pretrained(tmp_path / "model")
    assert np.allclose(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert np.allclose(loaded.predict_proba("a lovely film"), loaded.predict_proba(["a lovely film"])[0])
    assert (loaded.classes_[loaded.class_scores(TEXTS).argmax(axis=1)] == loaded.predict(TEXTS)).all()


@pytest.mark.parametrize("sharpness", [0.0, -1.0, "much", float("nan"), [1.0]])
def test_a_changed_one_is_refused(sharpness: object, tmp_path: Path) -> None:
    folder = CapsuleClassifier(settings={"epochs": 1}).fit(TEXTS, NAMES).save_pretrained(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | {"sharpness": sharpness}))
    with pytest.raises(StoreError, match="sharpness"):
        CapsuleClassifier.from_pretrained(tmp_path / "model")
    assert folder is not None


def test_without_validation_they_are_shares_of_the_sum() -> None:
    model = CapsuleClassifier(validation=0, settings={"epochs": 1}).fit(TEXTS, NAMES)
    scores = model.class_scores(TEXTS)
    assert np.allclose(model.predict_proba(TEXTS), scores / scores.sum(axis=1, keepdims=True))
