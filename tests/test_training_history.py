"""The history is drawn, read again after a kill, and sent to loggers where they are installed."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from capsroute.training import TensorBoardLogger, WandbLogger, draw_curves, read_history
from capsroute.training.history import HistoryFile, Row
from capsroute.training.loggers import Logger

ROW = Row(
    epoch=1, step=10, loss=0.5, accuracy=0.6, learning_rate=1e-3, texts_per_second=100.0, waiting=0.1, seconds=2.0
)
ROWS = [replace(ROW, epoch=n, step=10 * n, valid_loss=1 / n, valid_accuracy=1 - 1 / n) for n in (1, 2, 3)]


def test_a_file_there_and_back_without_a_line_that_was_cut_short(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history.jsonl", ROWS[:1])
    file.append(ROWS[1])
    assert read_history(file.path) == ROWS[:2]
    with file.path.open("a") as torn:
        torn.write('{"epoch": 3, "st')
    assert read_history(file.path) == ROWS[:2]


@pytest.mark.parametrize("rows", [ROWS, [ROW]], ids=["with validation", "without"])
def test_curves_are_a_picture(rows: list[Row], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_curves(rows, tmp_path / "curves.png", best_epoch=1)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_curves_without_matplotlib_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install capsroute\[paper\]"):
        draw_curves(ROWS, tmp_path / "curves.png")


def test_no_rows_no_curves(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the history is empty"):
        draw_curves([], tmp_path / "curves.png")


@pytest.mark.parametrize(
    ("logger", "package"),
    [(lambda: TensorBoardLogger("x"), "tensorboard"), (lambda: WandbLogger("x"), "wandb")],
    ids=["tensorboard", "wandb"],
)
def test_a_logger_without_its_package_names_it(logger: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch.utils.tensorboard", "tensorboard", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=f"needs the package {package}: pip install {package}"):
        logger()


def test_tensorboard_gets_every_measure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written: list[tuple[str, float, int]] = []
    writer = SimpleNamespace(
        add_scalar=lambda *what: written.append(what), close=lambda: written.append(("end", 0, 0))
    )
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module("tb", SummaryWriter=lambda _: writer))
    logger = TensorBoardLogger(tmp_path)
    assert isinstance(logger, Logger)
    logger.log(ROW)
    logger.close()
    assert ("loss", 0.5, 10) in written
    assert written[-1] == ("end", 0, 0)
    assert not any(name.startswith("valid") for name, _, _ in written)  # nothing is made up


def test_wandb_gets_every_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    run = SimpleNamespace(log=lambda row, step: calls.append((row, step)), finish=lambda: calls.append("end"))

    def init(**options: Any) -> Any:
        calls.append(options)
        return run

    monkeypatch.setitem(sys.modules, "wandb", module("wandb", init=init))
    logger = WandbLogger("capsules", name="first", config={"seed": 1})
    assert isinstance(logger, Logger)
    logger.log(ROWS[1])
    logger.close()
    assert calls[0] == {"project": "capsules", "name": "first", "config": {"seed": 1}}
    assert calls[1][0]["valid_accuracy"] == 0.5
    assert calls[1][1] == 20
    assert calls[2] == "end"


def module(name: str, **content: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(content)
    return made
