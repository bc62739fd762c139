"""CapsuleClassifier: texts and labels in, predictions and reasons out; a scikit-learn estimator.

>>> model = CapsuleClassifier(settings={"epochs": 1, "dim": 8, "children": 4})
>>> model.get_params()["preset"]
'default'
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted  # pyright: ignore[reportUnknownVariableType]

from capsroute.explain.explanation import Explanation, explain
from capsroute.fitting import evidence_of, fit_further, fit_model, scores_of
from capsroute.hub import upload
from capsroute.inputs import KINDS, Given, as_array, names_of, plain, plain_settings, texts_of, with_labels
from capsroute.model import CapsuleNetwork
from capsroute.networks import Network
from capsroute.plan import Plan, make_plan
from capsroute.preparation import Part, make_parts, with_fitting_loss
from capsroute.store import StoredModel, load_model, save_model
from capsroute.text.tokens import Tokenizer
from capsroute.training.calibration import probabilities
from capsroute.training.config import make_device
from capsroute.training.loggers import Logger
from capsroute.training.progress import ProgressName


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
        return self._fit(X, y, X_valid, y_valid, say=announce or _silent, loggers=loggers)

    def partial_fit(
        self, X: Given, y: Iterable[Any] | None = None, *, classes: Iterable[Any] | None = None
    ) -> "CapsuleClassifier":
        """One more epoch on these texts, with the words and labels that are known; the first call is a `fit`.

        Args:
            classes: all labels that will come, for a first call whose texts do not have them all.
        """
        if not hasattr(self, "_model"):
            return self._fit(X, y, None, None, say=_silent, classes=None if classes is None else list(classes))
        stored = self._model
        plan = self._plan({"epochs": 1, "decay": "constant", "warm_up": 0.0})
        plan = with_fitting_loss(plan, stored.labels, chosen=self._loss_is_chosen)
        texts, given = with_labels(X, y)
        fit_further(stored, plan, Part(texts, stored.labels.encode(names_of(given))), progress=self.progress)
        return self

    def _fit(
        self,
        X: Given,
        y: Any,
        X_valid: Given | None,
        y_valid: Any,
        *,
        say: Callable[[str], None],
        loggers: Sequence[Logger] = (),
        classes: list[Any] | None = None,
    ) -> "CapsuleClassifier":
        """Nothing of the estimator changes before all is done."""
        plan = self._plan()
        make_device(plan.training.device)  # a device that is not there is refused before anything is read
        parts = make_parts(X, y, X_valid, y_valid, classes=classes, share=self.validation, seed=plan.training.seed)
        planned, plan = plan, with_fitting_loss(plan, parts.labels, chosen=self._loss_is_chosen)
        if plan is not planned:
            say(f"texts have several labels: the loss is {plan.training.loss}")
        stored, self.training_ = fit_model(
            plan, parts, folder=self.folder, resume=self.resume, progress=self.progress, loggers=loggers, say=say
        )
        stored.facts |= {"preset": self.preset, "settings": plain_settings(self.settings)}
        self._take(stored)
        return self

    # -------------------------------------------------------------- predicting

    def predict_proba(self, X: Given) -> NDArray[np.float64]:
        """Probabilities [text, class] in the order of `classes_`: of one label they sum to 1, calibrated on the
        validation part if there was one; of several each label has its own score.

        Of one text, given as it is and not in a list, the probabilities [class].
        """
        scores = self.class_scores(X)
        if self._model.labels.several:
            return scores
        if self._model.sharpness is not None:
            found = probabilities(evidence_of(self._model, np.atleast_2d(scores)), self._model.sharpness)
            return found if scores.ndim == 2 else found[0]
        total = scores.sum(axis=-1, keepdims=True)
        # A text without a single word has the score 0 for every class: nothing is known, all are alike.
        return np.where(total > 0, scores / np.where(total > 0, total, 1), 1 / scores.shape[-1])

    def class_scores(self, X: Given) -> NDArray[np.float64]:
        """Class scores as the network gives them: of capsules their lengths, in [0, 1]."""
        check_is_fitted(self, "_model")
        if isinstance(X, str):
            return scores_of(self._model, [X])[0]
        return scores_of(self._model, texts_of(X))

    def predict(self, X: Given) -> Any:
        """The label of each text, or the list of its labels; of one text, given as it is, its own."""
        if isinstance(X, str):
            (found,) = self.decide(self.predict_proba([X]))
            return plain(found)
        return self.decide(self.predict_proba(X))

    def decide(self, proba: NDArray[np.float64]) -> NDArray[Any] | list[list[Any]]:
        """Rows of `predict_proba` -> labels."""
        if self.thresholds_ is None:
            return self.classes_[proba.argmax(axis=1)]
        names = self.classes_.tolist()
        has = proba >= np.array(self.thresholds_)
        return [[names[label] for label in np.flatnonzero(row)] for row in has]

    def score(self, X: Given, y: Any = None, sample_weight: Any = None) -> float:
        """The share of texts with all labels right."""
        check_is_fitted(self, "_model")
        texts, given = with_labels(X, y)
        if not given:
            raise ValueError("there are no texts to score.")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights is not None and weights.shape != (len(given),):
            raise ValueError(f"there are {len(given)} texts, but weights of the shape {list(weights.shape)}.")
        wanted, found = names_of(given), names_of(list(self.predict(texts)))
        several = self._model.labels.several
        right = [set(a) == set(b) if several else a == b for a, b in zip(wanted, found, strict=True)]
        return float(np.average(right, weights=weights))

    def explain(self, text: str) -> Explanation:
        """Why: the exact share of every word in the score of every class."""
        check_is_fitted(self, "_model")
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"one text is explained at a time: give a string, not a {type(text).__name__}.")
        network, labels = self._model.network, self._model.labels
        if not isinstance(network, CapsuleNetwork):
            raise ValueError(f"'{self.network}' has no exact explanation: it is a baseline, not a capsule network.")
        tokens, ids, spans, _ = self._model.tokenizer.encode_with_offsets(text)
        return explain(
            network,
            torch.tensor([ids], dtype=torch.int64),
            text=text,
            tokens=tokens,
            spans=spans,
            labels=labels.names,
            # Of several labels the thresholds decide, of one the highest score does.
            predicted=[str(label) for label in self.predict(text)] if labels.several else None,
        )

    # ----------------------------------------------------------------- storing

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write the model to a folder of plain files; an older model there is replaced only with `force`."""
        check_is_fitted(self, "_model")
        return save_model(self._model, folder, force=force)

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, device: str = "cpu") -> "CapsuleClassifier":
        """The model that `save_pretrained` wrote. A local folder; nothing is fetched."""
        stored = load_model(folder, device=device)
        model = cls(
            preset=stored.facts.get("preset", "default"),
            network=stored.facts.get("network", "capsule"),
            routing=stored.network.config.routing if isinstance(stored.network, CapsuleNetwork) else None,
            settings=stored.facts.get("settings"),
            seed=stored.training.get("seed", 0),
            device=device,
        )
        model._take(stored)
        return model

    def push_to_hub(self, repository: str, *, private: bool = True) -> str:
        """Upload the folder that `save_pretrained` writes; needs the package huggingface_hub and a login."""
        check_is_fitted(self, "_model")
        with TemporaryDirectory() as place:
            return upload(self.save_pretrained(Path(place) / "model"), repository, private=private)

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

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect: texts, no tables of numbers."""
        tags = cast(Any, super()).__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = True
        return tags

    def _take(self, stored: StoredModel) -> None:
        """Be this model."""
        kind = KINDS.get(str(stored.facts.get("label_kind")), str)
        self._model = stored
        self.classes_ = as_array([kind(name) for name in stored.labels.names])
        self.thresholds_ = stored.thresholds

    @property
    def _loss_is_chosen(self) -> bool:
        return any(name == "loss" or name.startswith("loss.") for name in self.settings or {})

    def _plan(self, changes: Mapping[str, Any] | None = None) -> Plan:
        settings = plain_settings(self.settings)
        own = plain_settings({"seed": self.seed, "device": self.device})
        for name in own:
            if name in settings:
                raise ValueError(f"{name} is an argument of the classifier: give it there, not among the settings.")
        return make_plan(
            self.preset, network=self.network, routing=self.routing, settings={**settings, **own, **(changes or {})}
        )


def _silent(_: str) -> None:
    return
