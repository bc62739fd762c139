"""A model on disk: it comes back as it was, and what was changed, cut or missing is said."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from capsroute.classifier import CapsuleClassifier
from capsroute.routing import ROUTINGS
from capsroute.routing.pooling import MeanPooling
from capsroute.store import CARD, CONFIG, FORMAT, LABELS, TOKENS, WEIGHTS, StoreError, is_model, load_model
from tests.toy import SMALL, toy


@pytest.fixture(scope="module")
def model() -> CapsuleClassifier:
    return CapsuleClassifier(settings={**SMALL, "epochs": 2}).fit(*toy())


@pytest.fixture
def folder(model: CapsuleClassifier, tmp_path: Path) -> Path:
    return model.save_pretrained(tmp_path / "model")


def test_the_folder_holds_five_plain_files(folder: Path) -> None:
    assert sorted(file.name for file in folder.iterdir()) == sorted([CARD, CONFIG, LABELS, TOKENS, WEIGHTS])
    assert is_model(folder)
    assert list(folder.parent.iterdir()) == [folder], "nothing is left beside it"


def test_a_fresh_process_predicts_the_same_without_a_network(model: CapsuleClassifier, folder: Path) -> None:
    texts, _ = toy(10, seed=5)
    code = f"""
import json, sys
from capsroute.classifier import CapsuleClassifier
def no_network(event, args):
    if event.startswith("socket.") and event != "socket.__new__":
        raise RuntimeError("the network was used: " + event)
sys.addaudithook(no_network)
model = CapsuleClassifier.from_pretrained({str(folder)!r})
print(json.dumps(model.predict_proba({texts!r}).tolist()))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert np.allclose(json.loads(done.stdout), model.predict_proba(texts), atol=1e-6)


def test_no_file_is_a_pickle(folder: Path) -> None:
    for file in folder.iterdir():
        assert not file.read_bytes().startswith((b"\x80", b"PK")), file.name


def test_the_card_tells_what_the_model_is(folder: Path) -> None:
    card = (folder / CARD).read_text()
    for word in (
        "graph routing",
        "`bad`, `good`",
        "training texts | 54",
        "accuracy on validation",
        "seed",
        "PyTorch",
    ):
        assert word in card, word
    assert "from_pretrained" in card


def _truncate(name: str) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return act


def _change(key: str, value: object) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        config = json.loads((folder / CONFIG).read_text())
        config[key] = value
        (folder / CONFIG).write_text(json.dumps(config))

    return act


def _change_network(**changes: object) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        network = json.loads((folder / CONFIG).read_text())["network"]
        _change("network", {**network, **changes})(folder)

    return act


def _flip(name: str) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[-1] ^= 1
        (folder / name).write_bytes(bytes(content))

    return act


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (_truncate(WEIGHTS), "model.safetensors' is not the file that was saved"),
        (_truncate(TOKENS), "tokenizer.json' is not the file that was saved"),
        (_truncate(LABELS), "labels.json' is not the file that was saved"),
        (_truncate(CONFIG), "cannot be read as JSON"),
        (_flip(WEIGHTS), "model.safetensors' is not the file that was saved"),
        (_change("format", FORMAT + 1), "update capsroute"),
        (_change("format", None), "names no format version"),
        (_change_network(routing="mine"), "add it to ROUTINGS before loading"),
        (_change_network(dim=5), "has the shape"),
        (_change_network(sizes=9), "unknown setting of a network 'sizes'"),
        (_change_network(word_dim=10**15), "cannot build"),
        (_change_network(vocabulary=9), "vocabulary is 9, but there are"),
        (_change_network(classes=3), "classes is 3, but there are 2 labels"),
        (_change("network", []), "must have an object as network"),
        (_change("files", None), "must have an object as files"),
        (_change("files", {}), "is not the file that was saved"),
        (lambda folder: (folder / WEIGHTS).unlink(), "model.safetensors is missing"),
        (lambda folder: (folder / CONFIG).unlink(), "it has no config.json"),
        (lambda folder: (folder / CONFIG).write_text("[]"), "must hold a JSON object"),
        (lambda folder: (folder / CONFIG).write_text('{"format": 1}'), "lacks network"),
    ],
)
def test_a_broken_folder_is_refused(folder: Path, act: Callable[[Path], None], sentence: str) -> None:
    act(folder)
    with pytest.raises(StoreError) as error:
        load_model(folder)
    assert sentence in str(error.value)


def test_thresholds_must_be_those_of_the_labels(tmp_path: Path) -> None:
    texts, labels = toy()
    several = CapsuleClassifier(settings={**SMALL, "epochs": 1}).fit(texts, [[label] for label in labels])
    folder = several.save_pretrained(tmp_path / "model")
    for thresholds in (None, [0.5], "0.5", [0.5, None], {"bad": 0.5}):
        _change("thresholds", thresholds)(folder)
        with pytest.raises(StoreError, match="its thresholds are not those of 2 labels"):
            load_model(folder)


def test_no_change_of_the_config_gets_through_as_a_traceback(folder: Path) -> None:
    """Whatever stands in the place of a value: the model loads, or a sentence says why not."""
    sound = json.loads((folder / CONFIG).read_text())
    places = [(key,) for key in sound] + [("network", key) for key in sound["network"]]
    loaded = 0
    for place in places:
        for value in (None, -1, 0.5, "x", [], {"x": 1}, True):
            changed = json.loads(json.dumps(sound))
            (changed if len(place) == 1 else changed["network"])[place[-1]] = value
            (folder / CONFIG).write_text(json.dumps(changed))
            with suppress(ValueError):
                CapsuleClassifier.from_pretrained(folder)
                loaded += 1
    assert loaded < len(places) * 7 / 2


def test_a_device_that_is_not_there(folder: Path) -> None:
    with pytest.raises(ValueError, match="there is no device 'tpu' on this machine: use 'auto' or 'cpu'"):
        CapsuleClassifier.from_pretrained(folder, device="tpu")
    assert CapsuleClassifier.from_pretrained(folder, device="auto").predict([]).shape == (0,)


def test_a_routing_of_ones_own_is_saved_and_must_be_there_to_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class MyRouting(MeanPooling):
        """A method from elsewhere."""

    monkeypatch.setitem(ROUTINGS, "mine", MyRouting)
    model = CapsuleClassifier(routing="mine", settings={**SMALL, "epochs": 1}).fit(*toy())
    folder = model.save_pretrained(tmp_path / "model")
    texts, _ = toy(5, seed=4)
    loaded = CapsuleClassifier.from_pretrained(folder)
    assert np.array_equal(loaded.predict_proba(texts), model.predict_proba(texts))
    monkeypatch.delitem(ROUTINGS, "mine")
    with pytest.raises(StoreError, match=r"unknown routing 'mine'.*add it to ROUTINGS before loading"):
        CapsuleClassifier.from_pretrained(folder)


def test_places_that_are_no_model(tmp_path: Path, model: CapsuleClassifier) -> None:
    with pytest.raises(StoreError, match="the folder does not exist"):
        load_model(tmp_path / "nothing")
    file = tmp_path / "file"
    file.write_text("hello")
    with pytest.raises(StoreError, match="is a file, but a model is a folder"):
        load_model(file)
    with pytest.raises(StoreError, match="is a file, not a folder"):
        model.save_pretrained(file)
    with pytest.raises(StoreError, match="holds other files"):
        model.save_pretrained(tmp_path)


def test_a_model_is_replaced_only_when_asked(model: CapsuleClassifier, folder: Path) -> None:
    before = (folder / WEIGHTS).read_bytes()
    with pytest.raises(StoreError, match="holds a model already"):
        model.save_pretrained(folder)
    other = CapsuleClassifier(settings={**SMALL, "epochs": 1}, seed=9).fit(*toy())
    other.save_pretrained(folder, force=True)
    assert (folder / WEIGHTS).read_bytes() != before
    assert [file.name for file in folder.parent.iterdir()] == ["model"]


def test_a_failure_while_writing_keeps_what_was_there(
    model: CapsuleClassifier, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="no space left on device; what was there is kept"):
        model.save_pretrained(folder, force=True)
    monkeypatch.undo()
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert [file.name for file in folder.parent.iterdir()] == ["model"]
    load_model(folder)


def test_todays_format_loads_for_ever() -> None:
    """tests/golden/model was saved by 0.1.0 and is never written again: a new format must still read it."""
    kept = Path(__file__).parent / "golden" / "model"
    expected = json.loads((kept.parent / "model_predictions.json").read_text())
    model = CapsuleClassifier.from_pretrained(kept)
    assert np.allclose(model.predict_proba(expected["texts"]), expected["proba"], atol=1e-5)
    assert list(model.predict(expected["texts"])) == expected["labels"]
