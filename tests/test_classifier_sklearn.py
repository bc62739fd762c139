"""scikit-learn's own checks of an estimator: all that apply to texts.

Those that look at the interface run on the classifier as it is. Those that fit and predict feed tables of numbers,
which are no texts: they run on the same classifier behind a step that writes each row of a table as a text, one word
for each number. Left out, with the reason: LEFT_OUT.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import estimator_checks as checks
from sklearn.utils.validation import check_is_fitted, validate_data

from capsroute.classifier import CapsuleClassifier
from tests.toy import SMALL

LEFT_OUT = {
    "check_array_api_input": "is about arrays of other libraries",
    "check_classifier_data_not_an_array": "needs pandas; columns of all kinds are in test_classifier.py",
    "check_classifiers_one_label": "one single label is refused: there is nothing to tell apart",
    "check_classifiers_regression_target": "numbers with a fraction are labels like any others",
    "check_fit2d_1sample": "one text is refused for its single label, in other words than those of a table",
}
INTERFACE = [
    checks.check_parameters_default_constructible,
    checks.check_no_attributes_set_in_init,
    checks.check_get_params_invariance,
    checks.check_set_params,
    checks.check_mixin_order,
    checks.check_estimator_repr,
    checks.check_estimator_cloneable,
    checks.check_estimator_tags_renamed,
    checks.check_valid_tag_types,
    checks.check_estimators_unfitted,
]


class RowsAsTexts(ClassifierMixin, BaseEstimator):
    """The classifier on tables: a number becomes a word that names its column and its size, to half a unit."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any) -> "RowsAsTexts":
        X, y = validate_data(self, X, y)
        settings = {**SMALL, "epochs": 12, "word_dim": 32, "dim": 8}
        self.model_ = CapsuleClassifier(settings=settings, seed=self.seed, validation=0).fit(_texts(X), y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self._fitted.predict(self._read(X))

    def predict_proba(self, X: Any) -> Any:
        # weights are float32, and scikit-learn's checks take their tolerance from the type of what they compare
        return self._fitted.predict_proba(self._read(X)).astype(np.float32)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return self._fitted.score(self._read(X), y, sample_weight)

    @property
    def _fitted(self) -> CapsuleClassifier:
        check_is_fitted(self)
        return self.model_

    def _read(self, X: Any) -> list[str]:
        return _texts(validate_data(self, X, reset=False))


def _texts(X: Any) -> list[str]:
    steps = np.clip(np.round(2 * np.asarray(X, dtype=float)), -8, 8).astype(int)
    return [" ".join(f"c{column}x{step}".replace("-", "m") for column, step in enumerate(row)) for row in steps]


@pytest.mark.parametrize("check", INTERFACE, ids=lambda check: check.__name__)
def test_the_interface(check: Callable[[str, Any], None]) -> None:
    check("CapsuleClassifier", CapsuleClassifier(settings={**SMALL, "epochs": 1}))


def _name(check: Any) -> str:
    return getattr(check, "func", check).__name__


ON_TABLES = [check for _, check in checks.estimator_checks_generator(RowsAsTexts()) if _name(check) not in LEFT_OUT]
SLOW = "check_classifiers_train"  # learns three tables to a given accuracy


@pytest.mark.parametrize("check", [check for check in ON_TABLES if _name(check) != SLOW], ids=_name)
def test_on_tables(check: Callable[[Any], None]) -> None:
    check(RowsAsTexts())


@pytest.mark.long
@pytest.mark.parametrize("check", [check for check in ON_TABLES if _name(check) == SLOW], ids=_name)
def test_on_tables_learned_well(check: Callable[[Any], None]) -> None:
    check(RowsAsTexts())


def test_every_check_is_run_or_left_out_by_name() -> None:
    there = {_name(check) for _, check in checks.estimator_checks_generator(RowsAsTexts())}
    assert set(LEFT_OUT) <= there
    assert {_name(check) for check in ON_TABLES} == there - set(LEFT_OUT)
    assert len(ON_TABLES) > 40
