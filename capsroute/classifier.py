"""CapsuleClassifier: texts and labels in, predictions and reasons out; a scikit-learn estimator.

>>> model = CapsuleClassifier(settings={"epochs": 1, "dim": 8, "children": 4})
>>> model.get_params()["preset"]
'default'
"""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted  # pyright: ignore[reportUnknownVariableType]

from capsroute._version import __version__
from capsroute.explain.explanation import Explanation, explain
from capsroute.inputs import KINDS, Given, Texts, as_array, names_of, take, texts_and_labels, type_of
from capsroute.model import CapsuleNetwork
from capsroute.networks import Network
from capsroute.plan import Plan, make_plan
from capsroute.store import StoredModel, load_model, save_model
from capsroute.text.batches import Batches
from capsroute.text.encoded import EncodedTexts, suggest_max_length
from capsroute.text.labels import Labels
from capsroute.text.tokens import Tokenizer
from capsroute.training import TrainingResult, predict, seed_everything, train
from capsroute.training.hold_out import hold_out
from capsroute.training.loggers import Logger
from capsroute.training.progress import ProgressName
from capsroute.training.thresholds import tune_thresholds

BULK = 256
"""Texts a batch where nothing is learned."""


class CapsuleClassifier(ClassifierMixin, BaseEstimator):
    """A text classifier.

    Args:
        preset: where the settings start from: `default`, `paper`, `capsule_a`, `capsule_b`.
        network: `capsule`, or a baseline: `textcnn`, `ngrams`.
        routing: the method, by name; None: the preset's.
        settings: what is changed of the preset; `capsroute.plan` says which names there are.
        validation: share of the training texts that is set aside to choose the best epoch and thresholds on, if no
            validation texts are given to `fit`. 0: none; all epochs are then run.
        seed: of everything random.
        device: `auto`, `cpu`, `cuda`...
        folder: where checkpoints and history are written; None: nowhere.
        resume: go on from the checkpoint in the folder.
        progress: `auto` (a bar on a terminal, else lines), `rich`, `lines` or `none`.
    """

    def __init__(
        self,
        *,
        preset: str = "default",
        network: str = "capsule",
        routing: str | None = None,
        settings: Mapping[str, Any] | None = None,
        validation: float = 0.1,
        seed: int = 0,
        device: str = "auto",
        folder: str | Path | None = None,
        resume: bool = False,
        progress: ProgressName = "none",
    ) -> None:
        self.preset = preset
        self.network = network
        self.routing = routing
        self.settings = settings
        self.validation = validation
        self.seed = seed
        self.device = device
        self.folder = folder
        self.resume = resume
        self.progress: ProgressName = progress

    # ---------------------------------------------------------------- learning

    def fit(
        self,
        X: Given,
        y: Iterable[Any] | None = None,
        *,
        X_valid: Given | None = None,
        y_valid: Iterable[Any] | None = None,
        announce: Callable[[str], None] | None = None,
        loggers: Sequence[Logger] = (),
    ) -> "CapsuleClassifier":
        """Learn from texts and their labels.

        Args:
            X: texts, or a corpus that has its labels with it.
            y: a label for each text, or a list of labels for each.
            X_valid, y_valid: texts to choose the best epoch on.
            announce: told in a sentence what was decided about the texts.
            loggers: get every row of the history.
        """
        plan = self._plan()
        started = perf_counter()
        learn, valid = self._parts(X, y, X_valid, y_valid)
        say = announce or _silent
        tokenizer, encoded = _read(learn.texts, plan)
        say(_cut(encoded, tokenizer))
        seed_everything(plan.training.seed)
        network = plan.build(
            vocabulary=len(tokenizer), classes=len(self._labels), max_length=tokenizer.config.max_length or 1
        )
        self._model = StoredModel(network, tokenizer, self._labels, training=plan.training.to_json())
        say(_sizes(network, tokenizer, len(encoded)))
        aside = None if valid is None else self._batches(tokenizer.encode(valid.texts), valid.targets, plan)
        self.training_ = train(
            network,
            self._batches(encoded, learn.targets, plan, shuffle=True),
            config=plan.training,
            valid=aside,
            folder=self.folder,
            resume=self.resume,
            progress=self.progress,
            loggers=loggers,
        )
        if self._labels.several:
            self._tune(valid)
        self._note(plan, learn, valid, cut=encoded.cut, seconds=perf_counter() - started)
        return self

    def partial_fit(self, X: Given, y: Iterable[Any] | None = None) -> "CapsuleClassifier":
        """One more epoch on these texts, with the words and labels that are known; the first call is a `fit`."""
        if not hasattr(self, "_model"):
            return self.fit(X, y)
        plan = self._plan({"epochs": 1, "decay": "constant", "warm_up": 0.0})
        texts, given = texts_and_labels(X, y)
        targets = self._labels.encode(names_of(given))
        batches = self._batches(self._model.tokenizer.encode(texts), targets, plan, shuffle=True)
        train(self._model.network, batches, config=plan.training, progress=self.progress)
        return self

    # -------------------------------------------------------------- predicting

    def predict_proba(self, X: Given) -> NDArray[np.float64]:
        """Scores [text, class] in the order of `classes_`: of one label they sum to 1, of several each is its own."""
        scores = self.decision_function(X)
        if self._labels.several or len(scores) == 0:
            return scores
        total = scores.sum(axis=1, keepdims=True)
        # A text without a single word has the score 0 for every class: nothing is known, all are alike.
        return np.where(total > 0, scores / np.where(total > 0, total, 1), 1 / scores.shape[1])

    def decision_function(self, X: Given) -> NDArray[np.float64]:
        """Class scores as the network gives them: lengths of class capsules, in [0, 1]."""
        check_is_fitted(self, "_model")
        texts, _ = texts_and_labels(X, None)
        if len(texts) == 0:
            return np.zeros((0, len(self._labels)))
        encoded = self._model.tokenizer.encode(texts)
        batches = Batches(encoded, None, batch_size=BULK, seed=0, shuffle=False)
        return predict(self._model.network, batches).astype(np.float64)

    def predict(self, X: Given) -> NDArray[Any] | list[list[Any]]:
        """The label of each text, or the list of its labels."""
        return self.decide(self.predict_proba(X))

    def decide(self, probabilities: NDArray[np.float64]) -> NDArray[Any] | list[list[Any]]:
        """Rows of `predict_proba` -> labels."""
        if not self._labels.several:
            return self.classes_[probabilities.argmax(axis=1)]
        has = probabilities >= np.array(self.thresholds_)
        return [[self.classes_[label] for label in np.flatnonzero(row)] for row in has]

    def score(self, X: Given, y: Any = None, sample_weight: Any = None) -> float:
        """The share of texts with all labels right."""
        texts, given = texts_and_labels(X, y)
        wanted, found = names_of(given), names_of(list(self.predict(texts)))
        right = [set(a) == set(b) if self._labels.several else a == b for a, b in zip(wanted, found, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def explain(self, text: str) -> Explanation:
        """Why: the exact share of every word in the score of every class."""
        check_is_fitted(self, "_model")
        network = self._model.network
        if not isinstance(network, CapsuleNetwork):
            raise ValueError(f"'{self.network}' has no exact explanation: it is a baseline, not a capsule network.")
        tokens, ids, spans, _ = self._model.tokenizer.encode_with_offsets(text)
        return explain(
            network,
            torch.tensor([ids], dtype=torch.int64),
            text=text,
            tokens=tokens,
            spans=spans,
            labels=self._labels.names,
            predicted=self._named_labels(text),
        )

    # ----------------------------------------------------------------- storing

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the model to a folder of plain files; an older model there is replaced only with `force`."""
        check_is_fitted(self, "_model")
        self._model.thresholds = self.thresholds_
        return save_model(self._model, folder, force=force)

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, device: str = "cpu") -> "CapsuleClassifier":
        """The model that `save_pretrained` wrote. A local folder; nothing is fetched."""
        stored = load_model(folder, device=device)
        name = stored.facts.get("network", "capsule")
        routing = stored.network.config.routing if isinstance(stored.network, CapsuleNetwork) else None
        model = cls(
            preset=stored.facts.get("preset", "default"),
            network=name,
            routing=routing,
            settings=stored.facts.get("settings"),
            seed=stored.training.get("seed", 0),
            device=device,
        )
        model._model = stored
        model._labels = stored.labels
        kind = KINDS.get(str(stored.facts.get("label_kind")), str)
        model.classes_ = as_array([kind(name) for name in stored.labels.names])
        model.thresholds_ = stored.thresholds
        return model

    def push_to_hub(self, repository: str, *, private: bool = True) -> str:
        """Upload the folder that `save_pretrained` writes; needs the package huggingface_hub and a login."""
        try:
            from huggingface_hub import HfApi  # pyright: ignore
        except ImportError as error:
            raise ImportError("push_to_hub needs a package: pip install huggingface_hub.") from error
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as place:
            folder = self.save_pretrained(Path(place) / "model")
            api: Any = HfApi()
            api.create_repo(repository, private=private, exist_ok=True)
            return str(api.upload_folder(repo_id=repository, folder_path=str(folder)))

    @property
    def facts_(self) -> dict[str, Any]:
        """What is known about the model: the words of its card."""
        check_is_fitted(self, "_model")
        return self._model.facts

    @property
    def network_(self) -> Network:
        """The trained network."""
        check_is_fitted(self, "_model")
        return self._model.network

    @property
    def tokenizer_(self) -> Tokenizer:
        """The words it knows."""
        check_is_fitted(self, "_model")
        return self._model.tokenizer

    # ---------------------------------------------------------------- the rest

    def _named_labels(self, text: str) -> list[str] | None:
        """The labels of a text that may have several, by their thresholds; of one label the highest score decides."""
        if not self._labels.several:
            return None
        (found,) = self.predict([text])
        return [str(label) for label in found]

    def _plan(self, changes: Mapping[str, Any] | None = None) -> Plan:
        settings = {**(self.settings or {}), "seed": self.seed, "device": self.device, **(changes or {})}
        return make_plan(self.preset, network=self.network, routing=self.routing, settings=settings)

    def _parts(self, X: Given, y: Any, X_valid: Given | None, y_valid: Any) -> "tuple[_Part, _Part | None]":
        """What is learned from and what is chosen on."""
        texts, given = texts_and_labels(X, y)
        if given is None:
            raise ValueError("fit needs labels: give y, or a corpus that has a label column.")
        if len(texts) != len(given):
            raise ValueError(f"there are {len(texts)} texts, but {len(given)} labels.")
        self._learn_labels(given)
        targets = self._labels.encode(names_of(given))
        if X_valid is not None:
            other, other_given = texts_and_labels(X_valid, y_valid)
            return _Part(texts, targets), _Part(other, self._labels.encode(names_of(other_given)))
        if self.validation == 0:
            return _Part(texts, targets), None
        rows, aside = hold_out(targets.numpy(), share=self.validation, seed=self.seed)
        return _Part(take(texts, rows), targets[rows]), _Part(take(texts, aside), targets[aside])

    def _learn_labels(self, given: Sequence[Any]) -> None:
        self._kind = type_of(given)
        self._labels = Labels.of(names_of(given))
        self.classes_ = as_array([KINDS[self._kind](name) for name in self._labels.names])
        self.thresholds_ = [0.5] * len(self._labels) if self._labels.several else None

    def _batches(self, encoded: EncodedTexts, targets: torch.Tensor, plan: Plan, *, shuffle: bool = False) -> Batches:
        size = plan.training.batch_size if shuffle else BULK
        return Batches(encoded, targets, batch_size=size, seed=plan.training.seed, shuffle=shuffle)

    def _tune(self, valid: "_Part | None") -> None:
        if valid is not None:
            scores = self.decision_function(valid.texts)
            self.thresholds_ = tune_thresholds(scores, valid.targets.numpy()).tolist()

    def _note(self, plan: Plan, learn: "_Part", valid: "_Part | None", *, cut: int, seconds: float) -> None:
        result: TrainingResult = self.training_
        best = next((row for row in result.history if row.epoch == result.best_epoch), result.history[-1])
        self._model.thresholds = self.thresholds_
        self._model.facts = {
            "preset": self.preset,
            "network": plan.network,
            "settings": dict(self.settings or {}),
            "label_kind": self._kind,
            "data": {
                "training texts": len(learn.texts),
                "validation texts": 0 if valid is None else len(valid.texts),
                "words known": len(self._model.tokenizer),
                "longest text read, in tokens": self._model.tokenizer.config.max_length,
                "training texts cut there": cut,
            },
            "measures": {
                "accuracy on validation": best.valid_accuracy,
                "best epoch": result.best_epoch,
                "epochs": len(result.history),
                "seconds": round(seconds, 1),
            },
            "versions": {"Python": platform.python_version(), "PyTorch": torch.__version__, "capsroute": __version__},
        }


class _Part:
    """Texts and their targets."""

    def __init__(self, texts: Texts, targets: torch.Tensor) -> None:
        self.texts = texts
        self.targets = targets


def _read(texts: Texts, plan: Plan) -> tuple[Tokenizer, EncodedTexts]:
    """The vocabulary, and the texts in its numbers up to the length that nearly all of them keep to."""
    tokenizer = Tokenizer.train(texts, plan.tokens)
    encoded = tokenizer.encode(texts)
    longest = suggest_max_length(encoded.lengths) if plan.max_length is None else plan.max_length
    return tokenizer.limited(longest), encoded.limited(longest)


def _cut(encoded: EncodedTexts, tokenizer: Tokenizer) -> str:
    """What is lost by the limit, in a sentence."""
    longest = tokenizer.config.max_length
    verb = "is longer and will be cut" if encoded.cut == 1 else "are longer and will be cut"
    return f"texts are read up to {longest} tokens: {encoded.cut or 'none'} of {len(encoded):,} {verb}"


def _sizes(network: Network, tokenizer: Tokenizer, texts: int) -> str:
    weights = sum(parameter.numel() for parameter in network.parameters())
    return f"{texts:,} texts to learn from, {len(tokenizer):,} words, {weights:,} weights"


def _silent(_: str) -> None:
    return
