"""The benchmarks run, and their yardstick computes what capsroute computes. How fast is never a test."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from benchmarks import QUESTIONS, textbook
from benchmarks.measure import interleaved, peak_mib
from benchmarks.step import operations
from capsroute.capsules.votes import UnsharedVote
from capsroute.cli import app
from capsroute.routing import make_routing

CHILDREN, PARENTS, DIM = 6, 3, 4


def layer(name: str, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of capsroute's layer and of the textbook's, with the same weights."""
    vote = UnsharedVote(children=CHILDREN, parents=PARENTS, dim=DIM).double()
    routing = make_routing(name, children=CHILDREN, parents=PARENTS, dim=DIM).double()
    for parameter in routing.parameters():
        parameter.data.normal_()
    if name == "em":
        for parameter in routing.parameters():
            parameter.data.zero_()
    plain: Callable[..., torch.Tensor] = textbook.LAYERS.get(name, textbook.graph)
    weights = dict(routing.named_parameters())
    extra = (
        {"attention": (weights["attention.weight"], weights["attention.bias"], weights["attention.score"])}
        if name == "graph"
        else {}
    )
    return routing(u, vote).activation, plain(u, vote.weight, **extra)


@pytest.mark.parametrize("name", [*textbook.LAYERS, "graph"])
def test_the_textbook_computes_the_same(name: str) -> None:
    torch.manual_seed(0)
    own, plain = layer(name, torch.randn(5, CHILDREN, DIM, dtype=torch.float64))
    torch.testing.assert_close(own, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_runs(question: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", question, "--smoke", "--json", "--threads", "1", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    assert rows
    assert all(row["question"] == question for row in rows)
    written = [json.loads(line) for line in (tmp_path / f"{question}.jsonl").read_text().splitlines()]
    assert [row["case"] for row in written] == [row["case"] for row in rows]
    assert all(row["threads"] == 1 and row["product_gflops"] > 0 and row["processor"] for row in written)
    assert (tmp_path / f"{question}.png").exists() == (question in ("step", "vocabulary", "classes"))


def test_the_table_is_shown() -> None:
    done = CliRunner().invoke(app, ["bench", "routing", "--smoke"])
    assert done.exit_code == 0
    assert "textbook" in done.stdout


def test_an_unknown_question_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="routing, step, corpus"):
        CliRunner().invoke(app, ["bench", "speed"], catch_exceptions=False)


def test_peak_memory_counts_what_lives_at_one_time() -> None:
    mib = 2**18  # float32

    def case() -> None:
        for _ in range(3):
            torch.empty(mib)
        kept = [torch.empty(mib) for _ in range(2)]
        kept[0].view(-1).add_(1)

    assert peak_mib(case) == pytest.approx(2, abs=0.01)


def test_peak_memory_leaves_out_what_was_there_before() -> None:
    state = torch.zeros(2**20)
    assert peak_mib(lambda: state.add_(1).mul_(2)) == 0


@pytest.mark.parametrize("options", [("--data", "nowhere"), ("--out", __file__)])
def test_wrong_places_are_refused_before_anything_is_measured(
    options: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.measure.machine_limits", lambda **_: pytest.fail("it measured"))
    with pytest.raises((ValueError, OSError)):
        CliRunner().invoke(app, ["bench", "all", "--smoke", *options], catch_exceptions=False)


def test_medians_leave_the_first_rounds_out() -> None:
    calls: list[str] = []
    found = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert calls == ["a", "b"] * 5
    assert found.keys() == {"a", "b"}


def test_operations_of_a_step() -> None:
    """0.82 G multiply-adds a batch forward below the routing, at length 100."""
    below = operations(100, "dynamic") / 6 - 32 * 50 * 4 * 64 * 64
    assert below == pytest.approx(0.84e9, rel=0.03)
