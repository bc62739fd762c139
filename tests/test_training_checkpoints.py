"""A run that is stopped anywhere goes on as if it had not been, and what is on disk stays whole."""

import errno
import json
import os
import resource
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from capsroute.training import CheckpointError, Checkpoints, Interrupted, TrainingConfig, TrainingResult, train
from capsroute.training.files import load_tensors, read_about, save_tensors
from capsroute.training.interruption import StopRequest
from capsroute.training.run import Run
from tests.test_training_data import TinyNetwork, batches_of, tiny_network

# Spread has a schedule, class weights and the validation part their own passes over the data.
CONFIG = TrainingConfig(
    epochs=4, batch_size=8, learning_rate=0.02, loss="spread", class_weights="balanced", checkpoint_steps=1
)
STEPS = 5  # an epoch


def run_through(
    folder: Path | None = None,
    *,
    config: TrainingConfig = CONFIG,
    resume: bool = False,
    watch: Callable[[int, int], object] | None = None,
    watch_valid: Callable[[int, int], object] | None = None,
    stop: Event | None = None,
    stop_in: int | None = None,
) -> tuple[TinyNetwork, TrainingResult]:
    """A run that always begins with the same weights, asked to stop in its so-manieth step (from 0) if at all."""
    network = tiny_network()
    stop = stop or Event()
    steps = iter(range(1000))

    def count(network: nn.Module, _: object) -> None:
        if network.training and next(steps) == stop_in:
            stop.set()

    network.register_forward_pre_hook(count)
    valid = batches_of(20, seed=1, watch=watch_valid)
    batches = batches_of(8 * STEPS, watch=watch)
    result = train(
        network, batches, config=config, valid=valid, folder=folder, resume=resume, stop_event=stop, progress="none"
    )
    return network, result


def without_times(result: TrainingResult) -> list[dict[str, Any]]:
    times = ("seconds", "waiting", "texts_per_second")
    return [{name: value for name, value in row.to_json().items() if name not in times} for row in result.history]


def assert_same(one: tuple[TinyNetwork, TrainingResult], other: tuple[TinyNetwork, TrainingResult]) -> None:
    for (name, a), b in zip(one[0].state_dict().items(), other[0].state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert without_times(one[1]) == without_times(other[1])
    assert (one[1].best_epoch, one[1].steps) == (other[1].best_epoch, other[1].steps)


@pytest.mark.parametrize("step", [0, 3, STEPS - 1, STEPS, 4 * STEPS - 1])
def test_a_run_stopped_in_a_step_goes_on_as_if_it_had_not(step: int, tmp_path: Path) -> None:
    with pytest.raises(Interrupted) as caught:
        run_through(tmp_path, stop_in=step)
    assert caught.value.step == step + 1  # the step was finished
    assert caught.value.saved is not None
    assert_same(run_through(tmp_path, resume=True), run_through())


def test_a_run_stopped_again_and_again(tmp_path: Path) -> None:
    for step in range(4 * STEPS):
        with pytest.raises(Interrupted) as caught:
            run_through(tmp_path, resume=True, stop_in=0)
        assert caught.value.step == step + 1
    assert_same(run_through(tmp_path, resume=True), run_through())


def test_a_run_stopped_while_it_validates_measures_on_all_texts_again(tmp_path: Path) -> None:
    stop = Event()
    with pytest.raises(Interrupted):  # the first look at the validation part is the fingerprint's
        run_through(tmp_path, stop=stop, watch_valid=lambda _, batch: batch == 1 and stop.set())
    assert_same(run_through(tmp_path, resume=True), run_through())


def test_without_a_folder_nothing_is_saved() -> None:
    stop = Event()
    stop.set()
    with pytest.raises(Interrupted, match="stopped by stop_event after 1 steps: not saved") as caught:
        run_through(stop=stop)
    assert caught.value.saved is None


def test_checkpoints_do_not_change_the_run(tmp_path: Path) -> None:
    rare = replace(CONFIG, checkpoint_steps=None, checkpoint_seconds=1e6)
    assert_same(run_through(tmp_path), run_through(config=rare))


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    first = run_through(tmp_path)
    seen: list[tuple[int, int]] = []
    assert_same(run_through(tmp_path, resume=True, watch=lambda *at: seen.append(at)), first)
    assert set(seen) == {(1, batch) for batch in range(STEPS)}  # class weights and fingerprint, no training


def test_resume_without_a_checkpoint_starts(tmp_path: Path) -> None:
    assert_same(run_through(tmp_path, resume=True), run_through())


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    run_through(tmp_path)
    with pytest.raises(CheckpointError, match="holds a run already: go on with it by resume=True"):
        run_through(tmp_path)
    Checkpoints(tmp_path).clear()
    run_through(tmp_path)


def test_resume_needs_a_folder() -> None:
    with pytest.raises(ValueError, match="resume=True needs the folder"):
        run_through(resume=True)


def stopped(folder: Path) -> None:
    """Make a run that was stopped in its second epoch."""
    with pytest.raises(Interrupted):
        run_through(folder, stop_in=STEPS + 1)


def test_another_setting_is_named(tmp_path: Path) -> None:
    stopped(tmp_path)
    with pytest.raises(CheckpointError, match=r"started with learning_rate 0.02, but is to go on with 0.1"):
        run_through(tmp_path, config=replace(CONFIG, learning_rate=0.1), resume=True)
    run_through(tmp_path, config=replace(CONFIG, checkpoint_steps=2), resume=True)  # no matter to the weights


def test_other_texts_are_noticed(tmp_path: Path) -> None:
    stopped(tmp_path)
    with pytest.raises(CheckpointError, match="started on other texts"):
        train(tiny_network(), batches_of(8 * STEPS, seed=5), config=CONFIG, folder=tmp_path, resume=True)


def test_another_network_is_named(tmp_path: Path) -> None:
    stopped(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"whose words.weight has the shape \[40, 6\], but now it has \[50, 6\]"
    ):
        train(
            tiny_network(words=50),
            batches_of(8 * STEPS),
            config=CONFIG,
            valid=batches_of(20, seed=1),
            folder=tmp_path,
            resume=True,
        )


def newest_and_other(folder: Path) -> tuple[Path, Path]:
    older, newer = sorted(Checkpoints(folder).paths, key=lambda path: read_about(path)["number"])
    return newer, older


def test_another_format_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path)
    path, _ = newest_and_other(tmp_path)
    save_tensors(path, load_tensors(path), read_about(path) | {"format": 2})
    with pytest.raises(CheckpointError, match="has format 2, but this version of capsroute reads 1"):
        run_through(tmp_path, resume=True)


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def cut_in_the_header(data: bytes) -> bytes:
    return data[:20]


def changed(data: bytes) -> bytes:
    return data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]


def changed_number(data: bytes) -> bytes:
    return data.replace(b'\\"number\\": ', b'\\"numbed\\": ')


def emptied(_: bytes) -> bytes:
    return b""


BREAKS = [cut, cut_in_the_header, changed, changed_number, emptied]


@pytest.mark.parametrize("damage", BREAKS)
def test_a_broken_checkpoint_gives_way_to_the_one_before(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    stopped(tmp_path)
    path, other = newest_and_other(tmp_path)
    assert damage(path.read_bytes()) != path.read_bytes()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match=f"Going on from {other}"):
        resumed = run_through(tmp_path, resume=True)
    assert_same(resumed, run_through())


@pytest.mark.parametrize("damage", BREAKS)
def test_a_broken_older_checkpoint_is_no_loss(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    stopped(tmp_path)
    path, other = newest_and_other(tmp_path)
    other.write_bytes(damage(other.read_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checkpoint = Checkpoints(tmp_path).load()
    assert checkpoint is not None
    assert checkpoint.state.batch == read_about(path)["state"]["batch"]


def test_the_next_checkpoint_takes_the_place_of_the_broken_one(tmp_path: Path) -> None:
    stopped(tmp_path)
    path, other = newest_and_other(tmp_path)
    path.write_bytes(cut(path.read_bytes()))
    good, checkpoints = other.read_bytes(), Checkpoints(tmp_path)
    with pytest.warns(UserWarning, match="is cut short"):
        checkpoint = checkpoints.load()
    assert checkpoint is not None
    assert checkpoints.save(checkpoint) == path
    assert other.read_bytes() == good


def test_two_broken_checkpoints_are_an_error(tmp_path: Path) -> None:
    stopped(tmp_path)
    for path in Checkpoints(tmp_path).paths:
        path.write_bytes(changed(path.read_bytes()))
    with pytest.raises(CheckpointError, match=r"checksum is wrong\. No whole checkpoint is left"):
        run_through(tmp_path, resume=True)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for function in ("fsync", "replace"):
        for good_ones in (0, 1, 6):
            folder, left, real = tmp_path / f"{function}{good_ones}", [good_ones], getattr(os, function)

            def full(*arguments: Any, left: list[int] = left, real: Any = real) -> None:
                if left[0] == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                left[0] -= 1
                real(*arguments)

            with monkeypatch.context() as patched:
                patched.setattr(os, function, full)
                with pytest.raises(CheckpointError, match=r"cannot write to .* \(No space left on device\)"):
                    run_through(folder)
            assert not list(folder.glob("*.draft"))
            assert_same(run_through(folder, resume=True), run_through())


def test_a_file_that_may_not_grow_loses_nothing(tmp_path: Path) -> None:
    """The operating system itself refuses, in the middle of a write."""
    stopped(tmp_path)
    size = newest_and_other(tmp_path)[0].stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, limits[1]))
    try:
        with pytest.raises(CheckpointError, match=r"cannot write to .* \(File too large\)"):
            run_through(tmp_path, resume=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.glob("*.draft"))
    assert_same(run_through(tmp_path, resume=True), run_through())


def test_a_folder_that_cannot_be_written_to_is_found_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot write to .*file \(File exists\)"):
        run_through(tmp_path / "file")
    with pytest.raises(CheckpointError, match=r"\(Not a directory\)"):
        run_through(tmp_path / "file" / "below")


def test_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    stopped(folder)
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:  # to whom nothing is read-only
        for parent in (tmp_path, *tmp_path.parents[:2]):
            parent.chmod(0o755)
        os.seteuid(65534)
    try:
        with pytest.raises(CheckpointError, match=r"cannot write to .* \(Permission denied\)"):
            run_through(folder, resume=True)
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_the_clock_saves_no_oftener_than_writing_is_worth() -> None:
    config = TrainingConfig(batch_size=8, checkpoint_seconds=10.0)
    run = Run(tiny_network(), batches_of(20), None, config=config, folder=None, resume=False)
    now = run.saved_at
    due: list[bool] = []
    for saving_took, since in ((0.1, 9.0), (0.1, 11.0), (2.0, 39.0), (2.0, 41.0)):
        run.saving_took, run.saved_at = saving_took, now - since
        due.append(run._due())
    assert due == [False, True, False, True]
    run.save_if_due(StopRequest(None))  # without a folder there is nothing to do


def test_data_only(tmp_path: Path) -> None:
    """No file holds code: all are text, or safetensors that end with their checksum."""
    stopped(tmp_path)
    for path in tmp_path.iterdir():
        if path.suffix == ".safetensors":
            assert list(load_file(path)["sha256"].shape) == [32]
        else:
            assert path.suffix in (".json", ".jsonl")
            assert path.read_text().isascii()


def test_the_history_file_follows_the_checkpoint(tmp_path: Path) -> None:
    stopped(tmp_path)
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"epoch": 2, "torn')
    _, result = run_through(tmp_path, resume=True)
    rows = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [row.epoch for row in result.history]
