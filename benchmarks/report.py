"""Rows of a benchmark: appended to a file, shown as a table, drawn where they are a curve."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

CURVES = {"step": ("length", "tokens a text"), "vocabulary": ("words", "words"), "classes": ("classes", "classes")}
"""Questions about growth: the column that grows, and its name on the axis."""


def write_rows(rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], file: Path) -> None:
    """Append the rows, each with the facts of the machine."""
    when = datetime.now(timezone.utc).isoformat(timespec="seconds")
    with file.open("a", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps({**row, **facts, "when": when}) + "\n")


def show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """A table of one question."""
    columns = list(dict.fromkeys(name for row in rows for name in row if name != "question"))
    table = Table(title=str(rows[0]["question"]), title_justify="left")
    for name in columns:
        table.add_column(name, justify="left" if isinstance(rows[0].get(name), str) else "right")
    for row in rows:
        table.add_row(*(_number(row.get(name)) for name in columns))
    console.print(table)


def draw(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Milliseconds over what grows, one line a case, both axes logarithmic: in proportion is a slope of one."""
    question = str(rows[0]["question"])
    column, name = CURVES[question]
    figure = import_module("matplotlib.figure").Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for label in dict.fromkeys(_curve(row) for row in rows):
        points = [(row[column], row["ms"]) for row in rows if _curve(row) == label]
        axes.plot(*zip(*points, strict=True), marker="o", label=label)
    largest = max(rows, key=lambda row: row[column])
    smallest = min(row[column] for row in rows)
    ends = [smallest, largest[column]]
    if question != "vocabulary":
        line = [largest["ms"] * end / ends[1] for end in ends]
        axes.plot(ends, line, color="0.7", linestyle="--", zorder=0, label="in proportion")
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = sorted({row[column] for row in rows})
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_ylim(min(row["ms"] for row in rows) / 2, 2 * max(row["ms"] for row in rows))
    low, high = axes.get_ylim()
    round_numbers = [step * 10**power for power in range(-2, 6) for step in (1, 2, 5)]
    heights = [number for number in round_numbers if low <= number <= high]
    axes.set_yticks(heights, [f"{height:,g}" for height in heights])
    axes.minorticks_off()
    axes.set_xlabel(name)
    axes.set_ylabel("ms a training step")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(file, dpi=150)


def _curve(row: Mapping[str, Any]) -> str:
    return str(row.get("routing") or (row["case"] if row["question"] == "step" else "graph"))


def _number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:,.2f}"
