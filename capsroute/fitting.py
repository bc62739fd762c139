"""From a plan and texts apart to a trained model: words, network, training, thresholds, sharpness, facts."""

import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from capsroute._version import __version__
from capsroute.inputs import Texts
from capsroute.model import CapsuleNetwork
from capsroute.plan import Plan
from capsroute.preparation import Part, Parts, read_words, say_cut
from capsroute.store import StoredModel
from capsroute.text.batches import Batches
from capsroute.text.encoded import EncodedTexts
from capsroute.training import TrainingResult, draw_curves, predict, seed_everything, train
from capsroute.training.calibration import fit_sharpness
from capsroute.training.loggers import Logger
from capsroute.training.progress import ProgressName
from capsroute.training.thresholds import USUAL, tune_thresholds

BULK = 256
"""Texts a batch where nothing is learned."""
LATER = "texts learned from later"


def fit_model(
    plan: Plan,
    parts: Parts,
    *,
    folder: str | Path | None,
    resume: bool,
    progress: ProgressName,
    loggers: Sequence[Logger],
    say: Callable[[str], None],
) -> tuple[StoredModel, TrainingResult]:
    """Learn the words and then the weights. The seed is set before the network is built."""
    started = perf_counter()
    tokenizer, encoded = read_words(parts.learn.texts, plan)
    say(say_cut(encoded, tokenizer))
    seed_everything(plan.training.seed)
    longest = tokenizer.config.max_length or 1
    network = plan.build(vocabulary=len(tokenizer), classes=len(parts.labels), max_length=longest)
    weights = sum(parameter.numel() for parameter in network.parameters())
    say(f"{len(encoded):,} texts to learn from, {len(tokenizer):,} words, {weights:,} weights")
    valid = parts.valid
    result = train(
        network,
        _batches(encoded, parts.learn, plan, shuffle=True),
        config=plan.training,
        valid=None if valid is None else _batches(tokenizer.encode(valid.texts), valid, plan, shuffle=False),
        folder=folder,
        resume=resume,
        progress=progress,
        loggers=loggers,
    )
    if folder is not None:
        say(_curves(result, Path(folder) / "curves.png"))
    stored = StoredModel(network, tokenizer, parts.labels, training=plan.training.to_json())
    stored.thresholds = _thresholds(stored, valid)
    stored.sharpness = _sharpness(stored, valid)
    stored.facts = _facts(plan, parts, result, stored, cut=encoded.cut, seconds=perf_counter() - started)
    return stored, result


def fit_further(stored: StoredModel, plan: Plan, part: Part, *, progress: ProgressName) -> None:
    """Learn from more texts, with the words and labels that are known."""
    batches = _batches(stored.tokenizer.encode(part.texts), part, plan, shuffle=True)
    train(stored.network, batches, config=plan.training, progress=progress)
    data = stored.facts.get("data", {})
    # What was measured was measured on the network as it was before.
    later = {LATER: data.get(LATER, 0) + len(part.texts)}
    stored.facts = {**stored.facts, "data": {**data, **later}, "measures": {}}


def scores_of(stored: StoredModel, texts: Texts) -> NDArray[np.float64]:
    """What the network says of texts: scores [text, class]."""
    if len(texts) == 0:
        return np.zeros((0, len(stored.labels)))
    batches = Batches(stored.tokenizer.encode(texts), None, batch_size=BULK, seed=0, shuffle=False)
    return predict(stored.network, batches).astype(np.float64)


def _batches(encoded: EncodedTexts, part: Part, plan: Plan, *, shuffle: bool) -> Batches:
    size = plan.training.batch_size if shuffle else BULK
    return Batches(encoded, part.targets, batch_size=size, seed=plan.training.seed, shuffle=shuffle)


def _thresholds(stored: StoredModel, valid: Part | None) -> list[float] | None:
    """From which score on a text has each label, where it may have several."""
    if not stored.labels.several:
        return None
    if valid is None:
        return [USUAL] * len(stored.labels)
    return tune_thresholds(scores_of(stored, valid.texts), valid.targets.numpy()).tolist()


def evidence_of(stored: StoredModel, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a sharpness multiplies: lengths as they are; of a baseline, whose scores are a softmax, its logits."""
    return scores if isinstance(stored.network, CapsuleNetwork) else np.log(np.maximum(scores, 1e-30))


def _sharpness(stored: StoredModel, valid: Part | None) -> float | None:
    """What makes scores probabilities, where a text has one label and there is a part to see it on."""
    if stored.labels.several or valid is None:
        return None
    return fit_sharpness(evidence_of(stored, scores_of(stored, valid.texts)), valid.targets.numpy())


def _curves(result: TrainingResult, file: Path) -> str:
    """Draw how it went, if it can be drawn: a picture that is missing must not cost a model."""
    try:
        draw_curves(result.history, file, best_epoch=result.best_epoch)
    except (ImportError, OSError) as error:
        return f"learning curves were not drawn: {error}"
    return f"learning curves are in {file}"


def _facts(
    plan: Plan, parts: Parts, result: TrainingResult, stored: StoredModel, *, cut: int, seconds: float
) -> dict[str, Any]:
    """What the card will tell."""
    best = next((row for row in result.history if row.epoch == result.best_epoch), result.history[-1])
    return {
        "network": plan.network,
        "label_kind": parts.kind,
        "data": {
            "training texts": len(parts.learn.texts),
            "validation texts": 0 if parts.valid is None else len(parts.valid.texts),
            "words known": len(stored.tokenizer),
            "longest text read, in tokens": stored.tokenizer.config.max_length,
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
