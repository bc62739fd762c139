"""How the command line takes and gives words: sentences to standard error, results to standard output."""

import json
import sys
from collections.abc import Callable
from typing import Any, NoReturn


def fail(message: str, *, code: int = 2) -> NoReturn:
    print(f"capsroute: {message}", file=sys.stderr)  # noqa: T201
    sys.exit(code)


def sentence_of(error: Exception) -> str:
    """What went wrong, without the jargon of the operating system."""
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f"'{error.filename}': "
        return f"{place}{error.strerror.lower()}."
    return str(error)


def standard_input() -> str:
    """The whole of it as text, without its last end of line."""
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ValueError("standard input is not UTF-8: convert it first.") from error


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """key=value -> values: JSON where it is, else the word itself."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise ValueError(f"--set {pair!r} is not of the form key=value.")
        try:
            settings[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            settings[key.strip()] = value
    return settings


def sayer(quiet: bool) -> Callable[[str], None]:
    """Where sentences go: to standard error, so that standard output holds results alone."""

    def say(sentence: str) -> None:
        if not quiet:
            print(sentence, file=sys.stderr)  # noqa: T201

    return say


def write(lines: str) -> None:
    """Results at once: the next text may be long in coming."""
    sys.stdout.write(lines)
    sys.stdout.flush()


def print_json(content: dict[str, Any]) -> None:
    print(json.dumps(content, ensure_ascii=False, indent=2))  # noqa: T201
