"""Bad input gets a ValueError that names the argument, what was given and what is expected: at every entrance."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_input import CASES


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, str]]:
    """What all mistakes got, in an interpreter like a user's."""
    command = [sys.executable, "-W", "error", "-m", "tests.bad_input"]
    root = Path(__file__).parent.parent
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("place", CASES)
def test_every_mistake_gets_its_sentence(place: str, answers: dict[str, dict[str, str]]) -> None:
    for sentence, answer in answers[place].items():
        before, _, after = sentence.partition(" <> ")  # <>: "a whole number of" or nothing
        assert answer.startswith("ValueError: "), f"for '{sentence}' came '{answer}'"
        assert before in answer, f"for '{sentence}' came '{answer}'"
        assert after in answer, f"for '{sentence}' came '{answer}'"
