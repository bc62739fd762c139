"""A model on disk: a folder of five files, data and never code.

    config.json         format version, network, training, thresholds, sharpness, facts; checksums of the other files
    model.safetensors   weights
    tokenizer.json      vocabulary, in the format of the `tokenizers` library
    labels.json         label names in the order of the scores
    README.md           the model card

The folder appears whole or not at all: it is written beside its place and then moved there. Reading checks the format
version, the checksum of every file and the shape of every weight before anything is used.
"""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save  # pyright: ignore[reportUnknownVariableType]

from capsroute._version import __version__
from capsroute.card import model_card
from capsroute.networks import Network, network_from_json, network_to_json
from capsroute.text.labels import Labels
from capsroute.text.tokens import Tokenizer
from capsroute.training.config import make_device

FORMAT = 1
"""Raised when an old reader could misread a new folder; an old folder must load for ever."""
WEIGHTS, TOKENS, LABELS = "model.safetensors", "tokenizer.json", "labels.json"
CONFIG, CARD = "config.json", "README.md"


class StoreError(ValueError):
    """A folder that cannot be written or is no sound model."""


@dataclass
class StoredModel:
    """All that a prediction needs, and what is known about how it came to be.

    Args:
        thresholds: the score from which a text has a label, where it may have several.
        sharpness: what makes the scores of a single label probabilities (training/calibration.py); None: their
            shares of the sum.
        training: the settings it was trained with.
        facts: what the card tells: counts, measures, seed, versions.
    """

    network: Network
    tokenizer: Tokenizer
    labels: Labels
    thresholds: list[float] | None = None
    sharpness: float | None = None
    training: dict[str, Any] = field(default_factory=dict[str, Any])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


def save_model(model: StoredModel, folder: str | Path, *, force: bool = False) -> Path:
    """Write a model; an existing folder is replaced only if asked for, and only if it is a model or empty."""
    target = Path(folder)
    check_place(target, force=force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise StoreError(f"cannot write to '{target.parent}': {_reason(error)}.") from error
    try:
        _write(model, beside)
        _move_into_place(beside, target)
    except OSError as error:
        message = f"cannot write the model to '{target}': {_reason(error)}; what was there is kept."
        raise StoreError(message) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target


def load_model(folder: str | Path, *, device: str = "cpu") -> StoredModel:
    """Read a model; the network is ready to predict. Nothing is fetched from anywhere."""
    where = make_device(device)
    source = _place_to_read(Path(folder))
    config = _read_config(source)
    _check_files(source, config["files"])
    labels = Labels.from_json(_read_json(source / LABELS))
    tokenizer = Tokenizer.load(source / TOKENS)
    _check_sizes(source, config, labels=labels, words=len(tokenizer))
    try:
        network = network_from_json(config["network"])
    except (TypeError, ValueError, RuntimeError) as error:
        raise StoreError(
            f"'{source}' describes a network that this capsroute cannot build: {error} "
            "If it has a routing of yours, add it to ROUTINGS before loading."
        ) from error
    try:
        weights = load_file(source / WEIGHTS)
    except SafetensorError as error:
        raise StoreError(f"'{source / WEIGHTS}' is no safetensors file: {error}.") from error
    _check_weights(source, network, weights)
    network.load_state_dict(weights)
    return StoredModel(
        network=network.to(where).eval(),
        tokenizer=tokenizer,
        labels=labels,
        thresholds=config["thresholds"],
        sharpness=config.get("sharpness"),
        training=config["training"],
        facts=config["facts"],
    )


def is_model(folder: str | Path) -> bool:
    """Whether a folder looks like a saved model."""
    return (Path(folder) / CONFIG).is_file() and (Path(folder) / WEIGHTS).is_file()


def check_place(folder: str | Path, *, force: bool = False) -> None:
    """Refuse a place where `save_model` would."""
    target = Path(folder)
    if not target.exists():
        return
    if not target.is_dir():
        raise StoreError(f"'{target}' is a file, not a folder: choose another place for the model.")
    if not any(target.iterdir()):
        return
    if not is_model(target):
        raise StoreError(f"'{target}' holds other files: choose another folder for the model.")
    if not force:
        raise StoreError(f"'{target}' holds a model already: choose another folder, or replace it with force.")


def _write(model: StoredModel, folder: Path) -> None:
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.network.state_dict().items()}
    # Not by the library's save_file: it reports a full disk as a text, not as the error of the system.
    (folder / WEIGHTS).write_bytes(save(weights))
    model.tokenizer.save(folder / TOKENS)
    _write_json(folder / LABELS, model.labels.to_json())
    (folder / CARD).write_text(model_card(model), encoding="utf-8")
    config = {
        "format": FORMAT,
        "capsroute": __version__,
        "network": network_to_json(model.network),
        "thresholds": model.thresholds,
        "sharpness": model.sharpness,
        "training": model.training,
        "facts": model.facts,
        "files": {name: _checksum(folder / name) for name in (WEIGHTS, TOKENS, LABELS)},
    }
    _write_json(folder / CONFIG, config)
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors and temporary folders are made for their owner alone
        _sync(file)
    _sync(folder)


def _move_into_place(beside: Path, target: Path) -> None:
    """Rename; an old model steps aside first and comes back if the new one cannot take its place."""
    beside.chmod(0o755)
    if not target.exists():
        beside.rename(target)
    else:
        aside = _aside(target)
        shutil.rmtree(aside, ignore_errors=True)
        target.rename(aside)
        try:
            beside.rename(target)
        except OSError:
            aside.rename(target)
            raise
    _sync(target.parent)
    shutil.rmtree(_aside(target), ignore_errors=True)


def _aside(target: Path) -> Path:
    """Where an old model waits for the new one to take its place."""
    return target.with_name(f".{target.name}.old")


def _place_to_read(folder: Path) -> Path:
    """The folder; if a kill came just when the old model had stepped aside for the new one, the old model."""
    return _aside(folder) if folder.name and not folder.exists() and is_model(_aside(folder)) else folder


def _read_config(source: Path) -> dict[str, Any]:
    if not source.exists():
        raise StoreError(f"there is no model at '{source}': the folder does not exist.")
    if not source.is_dir():
        raise StoreError(f"'{source}' is a file, but a model is a folder.")
    if not (source / CONFIG).is_file():
        raise StoreError(f"'{source}' is no model: it has no {CONFIG}.")
    config = _read_json(source / CONFIG)
    version = config.get("format")
    if not isinstance(version, int) or version < 1:
        raise StoreError(f"'{source / CONFIG}' names no format version: it was not written by capsroute.")
    if version > FORMAT:
        raise StoreError(
            f"'{source}' has the format {version}, written by capsroute {config.get('capsroute')}; "
            f"this is {__version__}, which reads up to {FORMAT}: update capsroute."
        )
    missing = [key for key in ("network", "thresholds", "training", "facts", "files") if key not in config]
    if missing:
        raise StoreError(f"'{source / CONFIG}' lacks {', '.join(missing)}: the file was changed or cut short.")
    for key in ("network", "training", "facts", "files"):
        if not isinstance(config[key], dict):
            raise StoreError(f"'{source / CONFIG}' must have an object as {key}: the file was changed.")
    return config


def _check_files(source: Path, checksums: dict[str, Any]) -> None:
    for name in (WEIGHTS, TOKENS, LABELS):
        if not (source / name).is_file():
            raise StoreError(f"'{source}' is not complete: {name} is missing.")
        try:
            checksum = _checksum(source / name)
        except OSError as error:
            raise StoreError(f"'{source / name}' cannot be read: {_reason(error)}.") from error
        if checksum != checksums.get(name):
            raise StoreError(f"'{source / name}' is not the file that was saved: it was changed or cut short.")


def _check_sizes(source: Path, config: dict[str, Any], *, labels: Labels, words: int) -> None:
    """Refuse parts that do not belong together, before a network of their sizes is built."""
    for size, what, found in (("classes", "labels", len(labels)), ("vocabulary", "words", words)):
        if config["network"].get(size) != found:
            said = config["network"].get(size)
            raise StoreError(f"'{source / CONFIG}' does not fit: {size} is {said!r}, but there are {found} {what}.")
    thresholds = config["thresholds"]
    sound = thresholds is None if not labels.several else _are_thresholds(thresholds, len(labels))
    if not sound:
        raise StoreError(f"'{source / CONFIG}' does not fit: its thresholds are not those of {len(labels)} labels.")
    sharpness = config.get("sharpness")  # models of early versions have none
    if sharpness is not None and not (isinstance(sharpness, float) and 0 < sharpness < inf):
        raise StoreError(f"'{source / CONFIG}' does not fit: its sharpness is {sharpness!r}, not a positive number.")


def _are_thresholds(values: Any, number: int) -> bool:
    return isinstance(values, list) and [type(value) for value in values] == [float] * number  # pyright: ignore


def _check_weights(source: Path, network: Network, weights: dict[str, torch.Tensor]) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise StoreError(
                f"'{source / WEIGHTS}' does not fit {CONFIG}: {name} has the shape {found.get(name)}, "
                f"expected is {expected.get(name)}."
            )


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StoreError(f"'{file}' cannot be read as JSON: {error}.") from error
    if not isinstance(content, dict):
        raise StoreError(f"'{file}' must hold a JSON object.")
    return {str(key): value for key, value in content.items()}  # pyright: ignore


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _sync(path: Path) -> None:
    """Ask the disk to have it, so that a rename never shows a folder whose files are not there yet."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
