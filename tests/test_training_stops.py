"""Killed, interrupted or terminated at random moments, a run ends with the weights of one that was left alone.

Real processes and real signals. A helper process (this file, run as a program) imports torch once and forks a child
for every run, so that 200 kills take seconds and the kill, not the import, decides where the child dies.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from capsroute.model import CapsuleNetwork, NetworkConfig
from capsroute.training import Interrupted, TrainingConfig, seed_everything, train
from capsroute.training.files import save_tensors
from capsroute.training.interruption import stop_requests
from tests.test_training_data import CLASSES, WORDS, TinyNetwork, batches_of, tiny_network

ROOT = Path(__file__).parent.parent
CONFIG = TrainingConfig(
    epochs=5,
    batch_size=8,
    learning_rate=0.02,
    loss="spread",
    class_weights="balanced",
    patience=3,
    seed=3,
    checkpoint_steps=1,
)
CONFIG_WITHOUT_WEIGHTS = TrainingConfig(batch_size=8, epochs=1)


# Saved after every third step, so that up to two are made again.
CAPSULE_CONFIG = replace(CONFIG, epochs=2, loss="margin", checkpoint_steps=3)
CAPSULES = NetworkConfig(vocabulary=WORDS, classes=CLASSES, word_dim=6, filters=4, kinds=4, dim=4, children=5)


def run_in_child(folder: Path, *, capsules: bool) -> None:
    """A whole run, resumed where there is something to resume; its outcome in a file beside the folder."""
    config = CAPSULE_CONFIG if capsules else CONFIG
    seed_everything(config.seed)
    network = CapsuleNetwork(CAPSULES) if capsules else TinyNetwork()
    result = train(
        network,
        batches_of(60),
        config=config,
        valid=batches_of(30, seed=1),
        folder=folder,
        resume=True,
        progress="none",
    )
    times = ("seconds", "waiting", "texts_per_second")
    rows = [{name: value for name, value in row.to_json().items() if name not in times} for row in result.history]
    about = {"history": rows, "best_epoch": result.best_epoch, "steps": result.steps}
    save_tensors(folder.with_suffix(".outcome"), network.state_dict(), about)


def child(folder: Path, *, capsules: bool) -> None:
    """What a forked child does with its life."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 1
    try:
        run_in_child(folder, capsules=capsules)
        code = 0
    except Interrupted as stop:
        folder.with_suffix(".stopped").write_text(str(stop))
        code = 3
    finally:
        os._exit(code)


def serve() -> None:
    """Read runs from stdin, a JSON object each, and answer how each ended."""
    # What torch imports only when it is used is imported here, not in every child.
    for network in (TinyNetwork(), CapsuleNetwork(CAPSULES)):
        train(network, batches_of(8), config=CONFIG_WITHOUT_WEIGHTS, progress="none")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # its coming is waited for below
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        order = json.loads(line)
        process = os.fork()
        if process == 0:
            child(Path(order["folder"]), capsules=order["capsules"])
        while not Path(order["not_before"]).exists():
            time.sleep(0.001)
        ended = signal.sigtimedwait([signal.SIGCHLD], order["seconds"])
        if ended is None:
            os.kill(process, order["signal"])
            signal.sigtimedwait([signal.SIGCHLD], 60)
        sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}) + "\n")
        sys.stdout.flush()


@dataclass
class Server:
    """The helper process, and which network it trains."""

    process: "subprocess.Popen[str]"
    capsules: bool

    def run(
        self, folder: Path, *, seconds: float = 60.0, number: int = signal.SIGKILL, not_before: Path | None = None
    ) -> int:
        """Run in a child and send it a signal after so many seconds: its exit code, or minus the signal.

        The seconds begin when a file is there, if one is named.
        """
        order: dict[str, Any] = {
            "folder": str(folder),
            "capsules": self.capsules,
            "seconds": seconds,
            "signal": int(number),
            "not_before": str(not_before or ROOT),
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["code"]


@pytest.fixture(scope="module")
def helper() -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.test_training_stops"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.communicate(timeout=60)


@pytest.fixture(scope="module", params=[False, True], ids=["tiny", "capsules"])
def server(helper: "subprocess.Popen[str]", request: pytest.FixtureRequest) -> Server:
    return Server(helper, request.param)


@dataclass(frozen=True)
class Reference:
    """A run that was left alone."""

    outcome: bytes
    seconds: float


@pytest.fixture(scope="module")
def reference(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    folder = tmp_path_factory.mktemp("reference") / "run"
    started = time.monotonic()
    assert server.run(folder) == 0
    return Reference(folder.with_suffix(".outcome").read_bytes(), time.monotonic() - started)


def kill_often(server: Server, reference: Reference, folder: Path, *, kills: int, seed: int) -> dict[str, int]:
    """Start runs and kill them at random moments, until so many have been killed. What the kills met, by kind."""
    moments = random.Random(seed)
    met = {"kills": 0, "runs": 0, "before the first checkpoint": 0, "while writing": 0}
    while met["kills"] < kills:
        run = folder / f"run{met['runs']}"
        while (code := server.run(run, seconds=moments.uniform(0, reference.seconds))) != 0:
            assert code == -signal.SIGKILL
            met["kills"] += 1
            met["before the first checkpoint"] += not list(run.glob("*.safetensors"))
            met["while writing"] += bool(list(run.glob("*.draft")))
        assert run.with_suffix(".outcome").read_bytes() == reference.outcome
        assert not list(run.glob("*.draft"))
        met["runs"] += 1
    return met


def test_five_kills(server: Server, reference: Reference, tmp_path: Path) -> None:
    met = kill_often(server, reference, tmp_path, kills=5, seed=1)
    assert met["kills"] >= 5


@pytest.mark.long
def test_two_hundred_kills(server: Server, reference: Reference, tmp_path: Path) -> None:
    met = kill_often(server, reference, tmp_path, kills=200, seed=2)
    sys.stderr.write(f"{met}\n")
    assert met["while writing"] > 0
    assert met["before the first checkpoint"] > 0


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_saves_and_stops(name: str, server: Server, reference: Reference, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = folder / "checkpoint-0.safetensors"
    code = server.run(folder, seconds=0.01, number=signal.Signals[name], not_before=first)
    assert code == 3
    message = folder.with_suffix(".stopped").read_text()
    assert message.startswith(f"training was stopped by {name} after ")
    assert f"saved in {folder}" in message
    assert server.run(folder) == 0
    assert folder.with_suffix(".outcome").read_bytes() == reference.outcome


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_handlers_are_put_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    stop = batches_of(40, watch=lambda _, batch: batch == 2 and signal.raise_signal(number))
    with pytest.raises(Interrupted, match=f"stopped by {number.name} after 3 steps"):
        train(tiny_network(), stop, config=CONFIG_WITHOUT_WEIGHTS, progress="none")
    assert signal.getsignal(number) is before
    train(tiny_network(), batches_of(8), config=CONFIG_WITHOUT_WEIGHTS, progress="none")
    assert signal.getsignal(number) is before


def test_a_second_signal_has_its_usual_effect() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with stop_requests() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.reason == "SIGINT"
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_requests() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.reason is None
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_can_train_and_be_stopped_by_an_event() -> None:
    stop, caught = threading.Event(), list[Interrupted]()

    def work() -> None:
        try:
            batches = batches_of(40, watch=lambda _, batch: batch == 2 and stop.set())
            train(tiny_network(), batches, config=CONFIG_WITHOUT_WEIGHTS, stop_event=stop, progress="none")
        except Interrupted as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(timeout=60)
    assert [(error.reason, error.step) for error in caught] == [("stop_event", 3)]


def test_a_grid_search_cannot_swallow_a_stop() -> None:
    assert not issubclass(Interrupted, Exception)


if __name__ == "__main__":
    serve()
