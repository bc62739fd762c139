"""A run learns, stops when it should, keeps the best weights, and says what went on."""

import errno
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from capsroute.model import CapsuleNetwork, NetworkConfig
from capsroute.training import BatchError, TrainingConfig, predict, read_history, seed_everything, train
from capsroute.training.evaluate import Measures, evaluate
from capsroute.training.history import Row
from capsroute.training.losses import make_loss
from tests.test_training_data import MemoryBatches, TinyNetwork, TinyOutput, batches_of, texts, tiny_network

MEASURES = ("accuracy", "micro_f1")
QUICK = TrainingConfig(epochs=3, batch_size=8, learning_rate=0.01, patience=None)


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_it_learns() -> None:
    network = tiny_network()
    result = train(network, batches_of(200), config=replace(QUICK, epochs=8, learning_rate=0.05), progress="none")
    scores = predict(network, batches_of(100, seed=1))
    assert (scores.argmax(axis=1) == texts(100, seed=1)[1].numpy()).mean() > 0.95
    assert result.history[-1].loss < 0.2 * result.history[0].loss
    assert (result.steps, result.best_epoch, result.stopped_early) == (8 * 25, None, False)
    assert not network.training


@pytest.mark.parametrize("routing", ["graph", "dynamic"])
def test_it_trains_capsule_networks(routing: str) -> None:
    config = replace(QUICK, epochs=2, seed=4)
    sizes = NetworkConfig(
        vocabulary=40, classes=3, word_dim=6, filters=4, kinds=4, dim=4, children=5, routing=routing
    )
    networks: list[CapsuleNetwork] = []
    for _ in range(2):
        seed_everything(config.seed)
        networks.append(CapsuleNetwork(sizes))
        losses = train(networks[-1], batches_of(40), config=config, progress="none").history
        assert losses[1].loss < losses[0].loss
    assert same_weights(*networks)


def test_the_same_seed_gives_the_same_weights_and_another_gives_others() -> None:
    networks: list[TinyNetwork] = []
    for seed in (0, 0, 1):
        networks.append(tiny_network())
        torch.rand(seed + len(networks))  # what was drawn before changes nothing
        train(networks[-1], batches_of(40), config=replace(QUICK, seed=seed), progress="none")
    assert same_weights(networks[0], networks[1])
    assert not same_weights(networks[0], networks[2])  # dropout differs


class Restless(TinyNetwork):
    """A network that draws random numbers whenever it is called."""

    def forward(self, ids: Tensor) -> TinyOutput:
        torch.rand(1)
        return super().forward(ids)


def test_validating_changes_nothing_in_training() -> None:
    losses: list[list[float]] = []
    for valid in (batches_of(20, seed=1), None):
        torch.manual_seed(0)
        result = train(Restless(), batches_of(40), config=QUICK, valid=valid, progress="none")
        losses.append([row.loss for row in result.history])
    assert losses[0] == losses[1]


def contradicted(number: int) -> MemoryBatches:
    """Texts whose labels are not those that training teaches: the better it learns, the worse it does."""
    ids, targets = texts(number, seed=1)
    return MemoryBatches(ids, (targets + 1) % 3)


def test_it_stops_early_and_keeps_the_best_weights() -> None:
    network, valid = tiny_network(dropout=0.0), contradicted(50)
    config = replace(QUICK, epochs=20, learning_rate=0.05, patience=3, monitor="loss", decay="constant")
    result = train(network, batches_of(100), config=config, valid=valid, progress="none")
    losses = [row.valid_loss for row in result.history]
    best = int(np.argmin(losses))
    assert (result.best_epoch, len(losses), result.stopped_early) == (best + 1, best + 1 + 3, True)
    measured = evaluate(network, valid.epoch(1), loss=make_loss("margin"))
    assert measured.loss == losses[best] != losses[-1]


@pytest.mark.parametrize(("monitor", "best"), [("loss", 1), ("accuracy", 2), ("micro_f1", 3), ("macro_f1", 4)])
def test_it_watches_what_it_is_told_to(monitor: str, best: int, monkeypatch: pytest.MonkeyPatch) -> None:
    measures = [Measures(loss=1.0, accuracy=0.0, micro_f1=0.0, macro_f1=0.0) for _ in range(5)]
    measures[0] = replace(measures[0], loss=0.5)
    measures[1] = replace(measures[1], accuracy=0.5)
    measures[2] = replace(measures[2], micro_f1=0.5)
    measures[3] = replace(measures[3], macro_f1=0.5)
    coming = iter(measures)
    monkeypatch.setattr("capsroute.training.run.evaluate", lambda *_, **__: next(coming))
    config = replace(QUICK, epochs=5, monitor=monitor)
    result = train(tiny_network(), batches_of(20), config=config, valid=batches_of(20), progress="none")
    assert result.best_epoch == best


def test_a_row_tells_of_its_epoch() -> None:
    result = train(tiny_network(), batches_of(20), config=QUICK, valid=batches_of(10, seed=1), progress="none")
    assert [(row.epoch, row.step) for row in result.history] == [(1, 3), (2, 6), (3, 9)]
    for row in result.history:
        assert 0 <= row.accuracy <= 1
        assert 0 <= row.waiting <= 1
        assert row.texts_per_second > 0
        assert row.valid_micro_f1 == row.valid_accuracy  # one label a text
    assert result.history[-1].learning_rate == pytest.approx(0.01 / 9)


def test_class_weights_help_the_rare_class() -> None:
    ids, targets = texts(300)
    keep = (targets != 2) | (torch.arange(300) % 12 == 0)
    found: dict[str, float] = {}
    for weights in ("none", "balanced"):
        network = tiny_network(dropout=0.0)
        config = replace(QUICK, epochs=4, learning_rate=0.02, class_weights=weights)
        train(network, MemoryBatches(ids[keep], targets[keep]), config=config, progress="none")
        rare = texts(300, seed=1)[1] == 2
        found[weights] = float((predict(network, batches_of(300, seed=1)).argmax(axis=1) == 2)[rare.numpy()].mean())
    assert found["balanced"] > found["none"] + 0.2


def test_several_labels_a_text() -> None:
    ids, targets = texts(100)
    table = nn.functional.one_hot(targets, 3).float()
    table[:, 0] = (ids == 7).any(dim=1).float()
    batches = MemoryBatches(ids, table)
    config = replace(QUICK, epochs=15, learning_rate=0.05, loss="binary_cross_entropy", class_weights="balanced")
    result = train(tiny_network(dropout=0.0), batches, config=config, valid=batches, progress="none")
    accuracy, micro_f1 = (np.array([getattr(row, f"valid_{name}") for row in result.history]) for name in MEASURES)
    assert min(accuracy[-1], micro_f1[-1]) > 0.95
    assert (accuracy != micro_f1).any()  # one counts texts, the other labels


def test_a_loss_for_one_label_refuses_several() -> None:
    table = nn.functional.one_hot(texts(20)[1], 3).float()
    with pytest.raises(ValueError, match="SpreadLoss takes one label a text"):
        train(
            tiny_network(), MemoryBatches(texts(20)[0], table), config=replace(QUICK, loss="spread"), progress="none"
        )


def test_half_precision_runs_on_the_cpu_too() -> None:
    network = tiny_network()
    config = replace(QUICK, precision="bfloat16")
    result = train(network, batches_of(40), config=config, valid=batches_of(20, seed=1), progress="none")
    assert result.history[-1].loss < result.history[0].loss
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}


class Poisoned(TinyNetwork):
    """A network to which the word 39 is poison."""

    def __init__(self, poison: str) -> None:
        super().__init__(dropout=0.0)
        self.poison = poison

    def forward(self, ids: Tensor) -> TinyOutput:
        output = super().forward(ids)
        bad = (ids == 39).any(dim=1, keepdim=True)
        if not bad.any():
            return output
        if self.poison == "refused":
            raise ValueError("children must be finite, but hold NaN or infinity.")
        if self.poison == "gradient":
            # The value is fine; the slope of a root at zero is not.
            return output._replace(activation=output.activation + (output.activation * 0).sqrt())
        return output._replace(activation=output.activation.masked_fill(bad, float(self.poison)))


def poisoned_batches(batch: int = 3) -> MemoryBatches:
    """Ten batches, one of which holds the word 39."""
    ids, targets = texts(80)
    ids[ids == 39] = 38
    batches = MemoryBatches(ids, targets)
    ids[list(batches.epoch(1))[batch].rows[0], 0] = 39
    return batches


@pytest.mark.parametrize(
    ("poison", "reason"),
    [
        ("nan", "the loss is nan"),
        ("inf", "the loss is (nan|inf)"),
        ("gradient", "the norm of the gradient is nan"),
        ("refused", "children must be finite"),
    ],
)
def test_a_batch_that_is_not_finite_stops_the_run_and_is_kept(poison: str, reason: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = Poisoned(poison)
    batches = poisoned_batches()
    config = replace(QUICK, checkpoint_steps=1)
    with pytest.raises(BatchError, match=f"in epoch 1 after 3 steps: {reason}") as caught:
        train(network, batches, config=config, folder=tmp_path, progress="none")
    assert str(tmp_path / "bad_batch.safetensors") in str(caught.value)
    bad, kept = list(batches.epoch(1))[3], load_file(tmp_path / "bad_batch.safetensors")
    assert torch.equal(kept["ids"], bad.ids)
    assert torch.equal(kept["targets"], bad.targets)
    assert kept["rows"].tolist() == bad.rows.tolist()
    assert all(torch.isfinite(weight).all() for weight in network.parameters())
    with pytest.raises(BatchError, match="in epoch 1 after 3 steps"):  # the checkpoints before it are whole
        train(Poisoned(poison), batches, config=config, folder=tmp_path, resume=True, progress="none")


def test_a_full_disk_does_not_hide_a_bad_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    torch.manual_seed(0)
    monkeypatch.setattr("capsroute.training.bad_batch.save_tensors", full)
    with pytest.raises(BatchError, match=r"the loss is nan .the batch is in this error's `batch`") as caught:
        train(Poisoned("nan"), poisoned_batches(), config=QUICK, folder=tmp_path, progress="none")
    assert (caught.value.batch.ids == 39).any()


def test_a_validation_loss_that_is_not_finite_stops_the_run_too() -> None:
    torch.manual_seed(0)
    valid = poisoned_batches()
    harmless = MemoryBatches(texts(8)[0].clamp_max(38), texts(8)[1])
    with pytest.raises(BatchError, match="the validation loss is nan") as caught:
        train(Poisoned("nan"), harmless, config=QUICK, valid=valid, progress="none")
    assert (caught.value.batch.ids == 39).any()
    assert caught.value.saved is None


def test_larger_batches_than_the_config_says_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a batch holds 8 texts, but config.batch_size is 4"):
        train(tiny_network(), batches_of(20), config=replace(QUICK, batch_size=4), progress="none")


def test_batches_that_cannot_count_are_refused() -> None:
    class Short(MemoryBatches):
        def __len__(self) -> int:
            return 5

        def epoch(self, number: int, start: int = 0):
            yield from list(super().epoch(number, start))[:2]

    with pytest.raises(ValueError, match="epoch 1 ended after 2 batches, but batches has the length 5"):
        train(tiny_network(), Short(*texts(40)), config=QUICK, progress="none")


def test_no_texts_are_refused() -> None:
    nothing = MemoryBatches(torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(ValueError, match="no texts to train on"):
        train(tiny_network(), nothing, config=QUICK)
    with pytest.raises(ValueError, match="no texts to validate on"):
        train(tiny_network(), batches_of(8), config=QUICK, valid=nothing)


class Recorder:
    """A logger that remembers."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.closed = 0

    def log(self, row: Row) -> None:
        self.rows.append(row)

    def close(self) -> None:
        self.closed += 1


def test_loggers_get_every_row_and_are_closed() -> None:
    recorder = Recorder()
    result = train(tiny_network(), batches_of(20), config=QUICK, loggers=[recorder], progress="none")
    assert tuple(recorder.rows) == result.history
    assert recorder.closed == 1


def test_loggers_are_closed_when_the_run_fails() -> None:
    recorder = Recorder()
    with pytest.raises(BatchError):
        train(Poisoned("nan"), poisoned_batches(), config=QUICK, loggers=[recorder], progress="none")
    assert (recorder.rows, recorder.closed) == ([], 1)


def test_the_folder_holds_history_and_settings(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "first"
    result = train(tiny_network(), batches_of(20), config=QUICK, folder=str(folder), progress="none")
    assert tuple(read_history(folder / "history.jsonl")) == result.history
    assert '"learning_rate": 0.01' in (folder / "training.json").read_text()
    assert {path.suffix for path in folder.iterdir()} == {".json", ".jsonl", ".safetensors"}


def test_lines_are_one_an_epoch_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    train(tiny_network(), batches_of(20), config=QUICK, valid=batches_of(20), progress="auto")
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert "best so far" in lines[0]


def test_none_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    train(tiny_network(), batches_of(20), config=QUICK, progress="none")
    assert capfd.readouterr() == ("", "")


def test_bars_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    train(tiny_network(), batches_of(20), config=QUICK, progress="auto")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\x1b[" in captured.err  # it draws
    assert captured.err.count("texts/s") == 3  # and leaves a line for each epoch


def test_an_unknown_progress_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown progress 'bar'"):
        train(tiny_network(), batches_of(20), config=QUICK, progress="bar")  # type: ignore[arg-type]
