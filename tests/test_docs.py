"""The documents tell the truth: their code runs as written, and the tests they name exist."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import capsroute
from capsroute.routing import ROUTINGS, make_routing
from capsroute.routing.contract import CHECKS
from tests.toy import toy

ROOT = Path(__file__).parent.parent


def python_blocks(document: str) -> str:
    """All Python blocks of a document, one after the other: later ones use what earlier ones made."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert blocks
    return "\n".join(blocks)


def run(code: str) -> subprocess.CompletedProcess[str]:
    """In an interpreter of its own, as a user's: without the checker of annotations, warnings as errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("document", ["README.md", "docs/add-a-routing.md"])
def test_the_code_runs_as_written(document: str) -> None:
    result = run(python_blocks(document))
    assert result.returncode == 0, result.stderr
    assert not result.stderr


def commands_of_the_readme() -> list[str]:
    """The lines of its blocks that call capsroute, without their comments."""
    blocks = re.findall(r"```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("capsroute ")]


def run_commands(commands: list[str], folder: Path) -> None:
    """In a shell, one after the other, beside the files that the README speaks of."""
    for name, seed in (("reviews.csv", 0), ("test.csv", 1)):
        rows = "".join(f'{label},"{text}"\n' for text, label in zip(*toy(100, seed=seed), strict=True))
        (folder / name).write_text("label,text\n" + rows)
    (folder / "texts.txt").write_text("a lovely day\n\na sad film\n")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in commands:
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_the_commands_run_as_written(tmp_path: Path) -> None:
    commands = [command for command in commands_of_the_readme() if not command.startswith("capsroute compare")]
    assert [command.split()[1] for command in commands] == ["check-data", "train", "evaluate", "predict", "explain"]
    run_commands(commands, tmp_path)
    assert (tmp_path / "my_model" / "README.md").exists()
    assert (tmp_path / "why.html").exists()


@pytest.mark.long
def test_the_comparison_runs_as_written(tmp_path: Path) -> None:
    commands = [command for command in commands_of_the_readme() if command.startswith("capsroute compare")]
    assert len(commands) == 1
    run_commands(commands, tmp_path)
    assert (tmp_path / "runs" / "compared" / "table.md").exists()


def test_make_has_the_targets_of_the_readme() -> None:
    made = re.findall(r"^make ([\w-]+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert made == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in made)


def test_the_routing_of_the_guide_is_short_and_can_be_used_by_name() -> None:
    code = python_blocks("docs/add-a-routing.md")
    lines = code[code.index("class ") : code.index("ROUTINGS[")].strip().splitlines()
    assert len(lines) <= 12
    use = """
import torch
from capsroute import CapsuleNetwork, NetworkConfig
small = dict(vocabulary=9, classes=2, word_dim=4, kinds=2, dim=4, children=3)
network = CapsuleNetwork(NetworkConfig(**small, routing="even"))
assert network(torch.tensor([[1, 2, 3]])).scores.shape == (1, 2)
"""
    result = run(code + use)
    assert result.returncode == 0, result.stderr


def test_fidelity_names_tests_that_exist() -> None:
    page = (ROOT / "docs/fidelity.md").read_text()
    tests = "\n".join(file.read_text() for file in (ROOT / "tests").glob("test_*.py"))
    checks = {check.__name__ for check in CHECKS}
    rows = [line for line in page.splitlines() if line.startswith("|") and line.count("|") == 7]
    named = 0
    for row in rows:
        for name in re.findall(r"`(\w+)`", row.split("|")[6]):
            named += 1
            assert name in checks or f"def {name}(" in tests, f"fidelity.md names {name}, which is no test"
    assert named > 30


def test_fidelity_has_a_row_for_every_question() -> None:
    page = (ROOT / "docs/fidelity.md").read_text()
    numbered = {number for row in page.splitlines() for number in re.findall(r"\d+", row[:10]) if row.startswith("|")}
    assert {str(number) for number in range(1, 39)} <= numbered


def header_of(name: str) -> str:
    """What the file of a routing opens with."""
    return inspect.getdoc(sys.modules[ROUTINGS[name].__module__]) or ""


@pytest.mark.parametrize("name", ROUTINGS)
def test_every_routing_file_opens_as_promised(name: str) -> None:
    """A sentence, the source, the formula, its relations, departures, cost, parameters, and an example."""
    header = header_of(name)
    lines = header.splitlines()
    assert lines[0].endswith("."), "the first line is one sentence"
    for part in ("Relations:", "Departures", "Cost:", "parameters", ">>> "):
        assert part in header, f"{part} is missing"
    assert re.search(r"arXiv|OpenReview|Li et al", header), "the source is missing"
    assert re.search(r"^ {4}\S.*=", header, re.MULTILINE), "the formula is missing"


@pytest.mark.parametrize(
    ("name", "options", "part"),
    [
        *((name, {}, "parameters: ") for name in ROUTINGS),
        ("transformer", {"wide": 7}, "parameters: "),
        ("gcn", {"temperature": "learned"}, "or (?=.* for a learned temperature)"),
        ("graph", {"attention": False, "temperature": "learned"}, "`after_transformed`, "),
        ("graph", {"attention": False, "aggregate": "after_transformed"}, "for the attention,\n"),
    ],
)
def test_parameters_are_as_the_file_says(name: str, options: dict[str, Any], part: str) -> None:
    """The formula in the header, computed, against the weights that are there."""
    found = re.search(part + r"([^.,`]+?)(?: for [^.]*)?[.,]", header_of(name))
    assert found, f"{name} does not say how many parameters it has"
    sizes = {"children": 50, "parents": 4, "dim": 8, "wide": options.get("wide", 32)}
    formula = found[1].replace("^", "**").replace("none", "0")
    made = make_routing(name, children=50, parents=4, dim=8, **options)
    assert sum(weight.numel() for weight in made.parameters()) == eval(formula, {}, sizes), formula


def test_the_public_names_are_there() -> None:
    for name in capsroute.__all__:
        assert getattr(capsroute, name) is not None
    assert set(capsroute.__all__) <= set(dir(capsroute))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        capsroute.nothing  # noqa: B018


def test_importing_the_package_does_not_wait_for_torch() -> None:
    result = run("import sys, capsroute; assert 'torch' not in sys.modules; print(capsroute.__version__)")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == capsroute.__version__
