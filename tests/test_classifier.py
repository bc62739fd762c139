"""The estimator: scikit-learn's contract, labels out as they went in, and the same seed the same model."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from capsroute.classifier import CapsuleClassifier
from capsroute.text import Corpus
from tests.toy import SMALL, toy


def small(**changes: Any) -> CapsuleClassifier:
    settings = {**SMALL, **changes.pop("settings", {})}
    return CapsuleClassifier(settings=settings, **changes)


@pytest.fixture(scope="module")
def fitted() -> CapsuleClassifier:
    return small().fit(*toy())


def test_learns_and_predicts(fitted: CapsuleClassifier) -> None:
    texts, labels = toy(seed=1)
    assert fitted.score(texts, labels) > 0.9
    assert list(fitted.predict(texts[:3])) == labels[:3]


def test_scores_and_labels_agree(fitted: CapsuleClassifier) -> None:
    texts, _ = toy(20, seed=2)
    proba = fitted.predict_proba(texts)
    assert proba.shape == (20, 2)
    assert np.allclose(proba.sum(axis=1), 1)
    assert (fitted.classes_[proba.argmax(axis=1)] == fitted.predict(texts)).all()


def test_the_order_and_company_of_texts_change_nothing(fitted: CapsuleClassifier) -> None:
    texts, _ = toy(20, seed=3)
    texts[3] += " " + "day " * 50
    together = fitted.predict_proba(texts)
    assert np.allclose(fitted.predict_proba(texts[::-1])[::-1], together, atol=1e-6)
    alone = np.concatenate([fitted.predict_proba([text]) for text in texts])
    assert np.allclose(alone, together, atol=1e-6)


def test_empty_and_unknown_texts_get_an_answer(fitted: CapsuleClassifier) -> None:
    proba = fitted.predict_proba(["", "   ", "\x00", "xyzzy plugh", "🙂"])
    assert np.isfinite(proba).all()
    assert np.allclose(proba[0], 0.5)
    assert fitted.predict([]).shape == (0,)
    assert fitted.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize(
    "names", [[0, 1], [5, -3], ["b", "a"], [True, False], [0.5, 2.5], [np.int64(3), np.int64(1)]], ids=str
)
def test_labels_come_out_as_they_went_in(names: list[Any], tmp_path: Any) -> None:
    texts, labels = toy(24)
    given = [names[label == "good"] for label in labels]
    model = small(settings={"epochs": 1}).fit(texts, given)
    expected = {name.item() if isinstance(name, np.generic) else name for name in names}
    assert set(model.classes_.tolist()) == expected
    assert all(type(label) is type(next(iter(expected))) for label in model.predict(texts).tolist())
    loaded = CapsuleClassifier.from_pretrained(model.save_pretrained(tmp_path / "model"))
    assert (loaded.predict(texts) == model.predict(texts)).all()
    assert loaded.classes_.tolist() == model.classes_.tolist()


def test_several_labels_a_text() -> None:
    texts, labels = toy(60, labels=("bad", "good", "odd"))
    given = [[label] if row % 4 else [label, "often"] for row, label in enumerate(labels)]
    texts = [text + " always" if row % 4 == 0 else text for row, text in enumerate(texts)]
    model = small(settings={"loss": "binary_cross_entropy", "epochs": 25, "dim": 8}).fit(texts, given)
    predicted = model.predict(texts)
    assert isinstance(predicted[0], list)
    assert model.score(texts, given) > 0.7
    assert len(model.thresholds_) == len(model.classes_) == 4
    assert model.predict_proba(texts).shape == (60, 4)


def test_a_corpus_brings_its_labels() -> None:
    texts, labels = toy()
    from_corpus = small().fit(Corpus.of(texts, labels))
    from_lists = small().fit(texts, labels)
    assert np.array_equal(from_corpus.predict_proba(texts), from_lists.predict_proba(texts))
    assert from_corpus.score(Corpus.of(texts, labels)) == from_lists.score(texts, labels)


def test_the_same_seed_gives_the_same_model_whatever_ran_before() -> None:
    texts, labels = toy()
    first = small(seed=3).fit(texts, labels)
    torch.rand(17)
    np.random.rand(5)
    small(seed=4, settings={"epochs": 1}).fit(texts, labels)
    second = small(seed=3).fit(texts, labels)
    assert np.array_equal(first.predict_proba(texts), second.predict_proba(texts))
    other = small(seed=5).fit(texts, labels)
    assert not np.array_equal(first.predict_proba(texts), other.predict_proba(texts))


def test_validation_texts_can_be_given() -> None:
    texts, labels = toy()
    model = small().fit(texts, labels, X_valid=texts[:10], y_valid=labels[:10])
    assert model.facts_["data"]["training texts"] == 60
    assert model.facts_["data"]["validation texts"] == 10
    without = small(validation=0).fit(texts, labels)
    assert without.training_.best_epoch is None


def test_partial_fit_goes_on() -> None:
    texts, labels = toy()
    model = small(settings={"epochs": 1}).fit(texts, labels)
    before = model.predict_proba(texts)
    for _ in range(4):
        model.partial_fit(texts, labels)
    after = model.predict_proba(texts)
    right = np.array([list(model.classes_).index(label) for label in labels])
    assert after[np.arange(60), right].mean() > before[np.arange(60), right].mean()
    fresh = small(settings={"epochs": 1}).partial_fit(texts, labels)
    assert fresh.predict(texts).shape == (60,)


def test_is_a_scikit_learn_estimator() -> None:
    model = small(seed=7)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(seed=8).seed == 8
    texts, labels = toy()
    assert cross_val_score(small(), texts, labels, cv=2).mean() > 0.7
    search = GridSearchCV(small(), {"routing": ["dynamic", "graph"]}, cv=2).fit(texts, labels)
    assert search.best_params_["routing"] in ("dynamic", "graph")
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    assert make_pipeline(lower, small()).fit(texts, labels).score(texts, labels) > 0.9


def test_scikit_learns_own_checks_that_apply_to_text() -> None:
    """Those of the interface; the others feed tables of numbers, which are no texts."""
    from sklearn.utils import estimator_checks as checks

    model = small()
    for check in (
        checks.check_parameters_default_constructible,
        checks.check_no_attributes_set_in_init,
        checks.check_get_params_invariance,
        checks.check_set_params,
        checks.check_estimator_repr,
        checks.check_estimator_cloneable,
        checks.check_estimator_tags_renamed,
    ):
        check("CapsuleClassifier", clone(model))


@pytest.mark.parametrize("network", ["textcnn", "ngrams"])
def test_baselines_are_trained_in_the_same_way(network: str, tmp_path: Any) -> None:
    sizes = {
        "word_dim": 8,
        "min_frequency": 1,
        "epochs": 20,
        "batch_size": 8,
        "learning_rate": 0.05,
        "patience": None,
    }
    texts, labels = toy()
    model = CapsuleClassifier(network=network, settings=sizes, validation=0).fit(texts, labels)
    assert model.score(texts, labels) > 0.9
    loaded = CapsuleClassifier.from_pretrained(model.save_pretrained(tmp_path / "model"))
    assert np.array_equal(loaded.predict_proba(texts), model.predict_proba(texts))
    with pytest.raises(ValueError, match="has no exact explanation"):
        model.explain(texts[0])


def test_an_explanation_adds_up_to_the_prediction(fitted: CapsuleClassifier) -> None:
    text = "The day was LOVELY, and then one strange thing."
    why = fitted.explain(text)
    assert why.text == text
    assert np.allclose(why.scores, fitted.decision_function([text])[0], atol=1e-6)
    assert why.predicted == (fitted.predict([text])[0],)
    best = why.top("good", n=1)[0]
    assert text[best.start : best.stop] == "LOVELY"


def test_what_is_wrong_is_said_in_a_sentence() -> None:
    texts, labels = toy(20)
    cases: list[tuple[str, Any]] = [
        ("there are 20 texts, but 19 labels", lambda: small().fit(texts, labels[:19])),
        ("fit needs labels", lambda: small().fit(texts)),
        ("a list of texts is expected, but one text was given", lambda: small().fit(texts[0], labels)),
        ("texts must be strings, but number 2 is 7 of the type int", lambda: small().fit([texts[0], 7], labels[:2])),
        ("there must be at least two different labels", lambda: small().fit(texts, ["same"] * 20)),
        ("unknown setting 'epoch'; did you mean 'epochs'?", lambda: small(settings={"epoch": 1}).fit(texts, labels)),
        ("unknown preset 'papers'; did you mean 'paper'?", lambda: small(preset="papers").fit(texts, labels)),
        ("unknown routing 'grahp'; did you mean 'graph'?", lambda: small(routing="grahp").fit(texts, labels)),
        ("unknown network 'cnn'; did you mean 'textcnn'?", lambda: small(network="cnn").fit(texts, labels)),
        ("not fitted", lambda: small().predict(texts)),
    ]
    for sentence, act in cases:
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the sentence is compared below
            act()
        assert sentence in str(error.value)
