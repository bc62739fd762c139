"""The estimator: scikit-learn's contract, labels out as they went in, and the same seed the same model."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from capsroute.classifier import CapsuleClassifier
from capsroute.inputs import labels_of
from capsroute.text import Corpus
from capsroute.training import read_history
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


def test_partial_fit_knows_the_labels_that_are_still_to_come() -> None:
    texts, labels = toy()
    model = small(settings={"epochs": 1}).partial_fit(texts, labels, classes=["odd", "good", "bad"])
    assert model.classes_.tolist() == ["bad", "good", "odd"]
    model.partial_fit(["a queer day"], ["odd"])
    assert model.facts_["data"]["texts learned from later"] == 1
    assert model.facts_["measures"] == {}, "the network is not the one that was measured"
    with pytest.raises(ValueError, match="unknown label 'new'"):
        model.partial_fit(texts[:1], ["new"])


def test_texts_and_labels_come_in_many_forms(fitted: CapsuleClassifier) -> None:
    texts, labels = toy()
    expected = fitted.predict_proba(texts)
    forms: list[Callable[[list[str]], Any]] = [
        tuple,
        np.array,
        lambda values: np.array(values, dtype=object),
        pa.array,
        lambda values: pa.chunked_array([values[:7], values[7:]]),
        iter,
        Series,
    ]
    for form in forms:
        assert np.array_equal(fitted.predict_proba(form(texts)), expected)
        assert fitted.score(form(texts), form(labels)) == fitted.score(texts, labels)
    column = small(settings={"epochs": 1}).fit(texts, np.array(labels)[:, None])
    assert column.classes_.tolist() == ["bad", "good"]


class Series:
    """What is asked of a column of a data frame."""

    def __init__(self, values: list[str]) -> None:
        self.values = values
        self.index = range(5, 5 + len(values))

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def tolist(self) -> list[str]:
        return self.values


class Frame(Series):
    """What tells a data frame from one of its columns."""

    columns = ("text",)


def test_one_text_in_one_label_out(fitted: CapsuleClassifier) -> None:
    text = "a lovely day"
    assert fitted.predict(text) == fitted.predict([text])[0]
    assert type(fitted.predict(text)) is str
    assert np.array_equal(fitted.predict_proba(text), fitted.predict_proba([text])[0])
    texts, labels = toy()
    numbers = small(settings={"epochs": 1}).fit(texts, [len(label) for label in labels])
    assert type(numbers.predict(text)) is int
    several = small(settings={"epochs": 1}).fit(texts, [{label} for label in labels])
    assert several.predict(text) == several.predict([text])[0]


def test_several_labels_have_a_loss_that_can_learn_them() -> None:
    texts, labels = toy()
    lists = [[label] for label in labels]
    said: list[str] = []
    CapsuleClassifier(settings={"epochs": 1, "min_frequency": 1}).fit(texts, lists, announce=said.append)
    assert said[0] == "texts have several labels: the loss is binary_cross_entropy"
    with pytest.raises(ValueError, match="'focal' takes one label a text: for several choose from margin, binary"):
        small(settings={"loss": "focal"}).fit(texts, lists)
    with pytest.raises(ValueError, match="'textcnn' gives one label a text"):
        CapsuleClassifier(network="textcnn").fit(texts, lists)


def test_a_fit_that_fails_leaves_the_model_as_it_was() -> None:
    texts, labels = toy()
    model = small(settings={"epochs": 1}).fit(texts, labels)
    before = model.predict_proba(texts)
    with pytest.raises(ValueError, match="learning_rate"):
        model.set_params(settings={**SMALL, "learning_rate": -1.0}).fit(texts, ["x", "y"] * 30)
    assert model.classes_.tolist() == ["bad", "good"]
    assert np.array_equal(model.predict_proba(texts), before)


def test_a_folder_holds_the_history_of_the_run(tmp_path: Path) -> None:
    said: list[str] = []
    small(folder=tmp_path / "run", settings={"epochs": 2}).fit(*toy(), announce=said.append)
    assert len(read_history(tmp_path / "run" / "history.jsonl")) == 2
    assert (tmp_path / "run" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert said[-1] == f"learning curves are in {tmp_path / 'run' / 'curves.png'}"
    assert said[0] == "texts are read up to 16 tokens: none of 54 are longer and will be cut"


def test_a_picture_that_cannot_be_drawn_costs_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    said: list[str] = []
    model = small(folder=tmp_path / "run", settings={"epochs": 1}).fit(*toy(), announce=said.append)
    assert "learning curves were not drawn: drawing curves needs matplotlib" in said[-1]
    assert model.predict("a fine day") in ("good", "bad")


def test_the_hub_gets_the_folder(fitted: CapsuleClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class Api:
        def create_repo(self, repository: str, **options: Any) -> None:
            calls.append((repository, options))

        def upload_folder(self, *, repo_id: str, folder_path: str) -> str:
            calls.append((repo_id, sorted(file.name for file in Path(folder_path).iterdir())))
            return f"https://hub/{repo_id}"

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=Api))
    assert fitted.push_to_hub("me/mine") == "https://hub/me/mine"
    files = ["README.md", "config.json", "labels.json", "model.safetensors", "tokenizer.json"]
    assert calls == [("me/mine", {"private": True, "exist_ok": True}), ("me/mine", files)]

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("401 Client Error\nhttps://...")

    monkeypatch.setattr(Api, "create_repo", refuse)
    with pytest.raises(ConnectionError, match=r"could not be uploaded to 'me/mine' \(401 Client Error\): look at"):
        fitted.push_to_hub("me/mine")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match="push_to_hub needs a package: pip install huggingface_hub"):
        fitted.push_to_hub("me/mine")


def test_a_parameter_grid_of_numpys_numbers(tmp_path: Path) -> None:
    model = small(seed=2, settings={"epochs": np.int64(1), "learning_rate": np.float32(0.1)})
    model.fit(*toy()).save_pretrained(tmp_path / "model")
    assert CapsuleClassifier.from_pretrained(tmp_path / "model").seed == 2


def test_measures_of_scikit_learn_that_rank() -> None:
    texts, labels = toy()
    assert cross_val_score(small(), texts, labels, cv=2, scoring="roc_auc").mean() > 0.7


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
    assert np.allclose(why.scores, fitted.class_scores(text), atol=1e-6)
    assert why.predicted == (fitted.predict([text])[0],)
    best = why.top("good", n=1)[0]
    assert text[best.start : best.stop] == "LOVELY"


def test_what_is_wrong_is_said_in_a_sentence() -> None:
    texts, labels = toy(20)
    cases: list[tuple[str, Any]] = [
        ("there are 20 texts, but 19 labels", lambda: small().fit(texts, labels[:19])),
        ("labels are needed", lambda: small().fit(texts)),
        ("a list of texts is expected, but one text was given", lambda: small().fit(texts[0], labels)),
        ("texts must be strings, but number 2 is 7 of the type int", lambda: small().fit([texts[0], 7], labels[:2])),
        ("there must be at least two different labels", lambda: small().fit(texts, ["same"] * 20)),
        ("unknown setting 'epoch'; did you mean 'epochs'?", lambda: small(settings={"epoch": 1}).fit(texts, labels)),
        ("unknown preset 'papers'; did you mean 'paper'?", lambda: small(preset="papers").fit(texts, labels)),
        ("unknown routing 'grahp'; did you mean 'graph'?", lambda: small(routing="grahp").fit(texts, labels)),
        ("unknown network 'cnn'; did you mean 'textcnn'?", lambda: small(network="cnn").fit(texts, labels)),
        ("not fitted", lambda: small().predict(texts)),
        ("not fitted", lambda: small().score(texts, labels)),
        ("there is no device 'tpu' on this machine", lambda: small(device="tpu").fit(texts, labels)),
        ("number 2 is None of the type NoneType", lambda: small().fit([texts[0], None], labels[:2])),
        ("number 2 is nan of the type float", lambda: small().fit([texts[0], float("nan")], labels[:2])),
        ("a list of labels is expected, but 5", lambda: labels_of(5)),
        ("a table was given: give its column", lambda: small().fit(Frame(texts), labels)),
        ("a table was given: give its column", lambda: small().fit({"text": texts}, labels)),
        ("but y is 'abab", lambda: small().fit(texts, "ab" * 10)),
        ("y is a table of the shape [20, 2]", lambda: small().fit(texts, np.ones((20, 2)))),
        ("text 1 has the type int and text 2 has 'a'", lambda: small().fit(texts, [1, "a"] * 10)),
        ("that of text 1 is None", lambda: small().fit(texts, [None, "a"] * 10)),
        ("that of text 2 is nan", lambda: small().fit(texts, [1.0, float("nan")] * 10)),
        ("but here are both", lambda: small().fit(texts, ["a", ["b"]] * 10)),
        ("y_valid was given without X_valid", lambda: small().fit(texts, labels, y_valid=labels)),
        ("there are 2 texts, but 1 labels", lambda: small().fit(texts, labels, X_valid=texts[:2], y_valid=["bad"])),
        ("validation must be a share", lambda: small(validation=1).fit(texts, labels)),
        ("seed is an argument of the classifier", lambda: small(settings={"seed": 1}).fit(texts, labels)),
        ("no word occurs 1 times or more", lambda: small().fit(["", " "] * 10, labels)),
    ]
    model = small(settings={"epochs": 1}).fit(texts, labels)
    cases += [
        ("there are 20 texts, but 5 labels", lambda: model.score(texts, labels[:5])),
        ("there are no texts to score", lambda: model.score([], [])),
        ("weights of the shape [3]", lambda: model.score(texts, labels, sample_weight=[1, 2, 3])),
        ("there are 2 texts, but 1 labels", lambda: model.partial_fit(texts[:2], labels[:1])),
    ]
    for sentence, act in cases:
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the sentence is compared below
            act()
        assert sentence in str(error.value)
