"""Rows of runs -> mean, spread, and differences that are called significant only when they are.

Runs of the same seed share the split, so models are compared in pairs: each with the best one, by a paired t test and
Wilcoxon's signed ranks over the seeds, Holm-corrected for the number of models.

>>> rows = [{"model": m, "seed": s, "accuracy": a, "macro_f1": a, "seconds": 1.0, "memory_mib": 9, "parameters": 5}
...         for m, accuracies in {"one": (0.8, 0.9), "two": (0.7, 0.75)}.items() for s, a in enumerate(accuracies)]
>>> [(line.model, round(line.accuracy, 3), line.seeds) for line in summarise(rows, ["two", "one"])]
[('one', 0.85, 2), ('two', 0.725, 2)]
"""

import csv
import io
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from capsroute.training.files import replace_text

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Line:
    """One model over its seeds."""

    model: str
    seeds: int
    accuracy: float
    spread: float | None  # standard deviation over the seeds; None for one seed
    macro_f1: float
    behind: float | None  # mean difference to the best model, of the same seeds
    p_t: float | None  # of that difference, Holm-corrected
    p_wilcoxon: float | None
    seconds: float
    memory_mib: float
    parameters: float

    @property
    def verdict(self) -> str:
        """In a word or two, what the difference to the best is worth."""
        if self.behind is None:
            return "best"
        if self.p_t is None:
            return "one seed: not tested"
        return "behind" if self.p_t < SIGNIFICANT else "not significantly behind"


def summarise(rows: Sequence[Mapping[str, Any]], models: Sequence[str]) -> list[Line]:
    """A line for each model that has runs, the best first."""
    table = {model: {row["seed"]: row for row in rows if row["model"] == model} for model in models}
    table = {model: runs for model, runs in table.items() if runs}
    if not table:
        return []
    means = {model: float(np.mean([run["accuracy"] for run in runs.values()])) for model, runs in table.items()}
    order = sorted(table, key=lambda model: -means[model])
    best = order[0]
    tests = {model: _paired(table[best], table[model]) for model in order[1:]}
    t = _holm({model: test[1] for model, test in tests.items()})
    w = _holm({model: test[2] for model, test in tests.items()})
    lines: list[Line] = []
    for model in order:
        runs = list(table[model].values())
        accuracies = [run["accuracy"] for run in runs]
        lines.append(
            Line(
                model=model,
                seeds=len(runs),
                accuracy=means[model],
                spread=float(np.std(accuracies, ddof=1)) if len(runs) > 1 else None,
                macro_f1=_mean(runs, "macro_f1"),
                behind=None if model == best else tests[model][0],
                p_t=t.get(model),
                p_wilcoxon=w.get(model),
                seconds=_mean(runs, "seconds"),
                memory_mib=_mean(runs, "memory_mib"),
                parameters=_mean(runs, "parameters"),
            )
        )
    return lines


def markdown(lines: Sequence[Line], *, task: Mapping[str, Any], command: str) -> str:
    """The table with what it was made from."""
    columns = ["model", "accuracy", "macro-F1", "behind", "p (t)", "p (Wilcoxon)", "verdict", "seconds", "MiB"]
    columns += ["parameters", "seeds"]
    head, rule = f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"
    body = [
        f"| {line.model} | {line.accuracy:.2%}{_plus_minus(line.spread)} | {line.macro_f1:.2%} "
        f"| {_or_dash(line.behind, '.2%')} | {_or_dash(line.p_t, '.3f')} | {_or_dash(line.p_wilcoxon, '.3f')} "
        f"| {line.verdict} | {line.seconds:.0f} | {line.memory_mib:.0f} | {line.parameters:,.0f} | {line.seeds} |"
        for line in lines
    ]
    settings = json.dumps({name: value for name, value in task.items() if value}, ensure_ascii=False, default=str)
    return (
        "\n".join([head, rule, *body])
        + "\n\nMean and standard deviation over seeds; differences paired by seed, p-values Holm-corrected. Seconds\n"
        "and memory are of a whole run: reading the words, training, prediction.\n\n"
        f"Made by `{command}`; {settings}.\n"
    )


def write_csv(lines: Sequence[Line], file: Path) -> None:
    """The same numbers for a spreadsheet."""
    stream = io.StringIO()
    names = list(asdict(lines[0])) if lines else []
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(line) for line in lines)
    replace_text(file, stream.getvalue())


def draw_summary(lines: Sequence[Line], file: Path) -> None:
    """Accuracy of each model with its spread over the seeds."""
    try:
        figure_class: Any = import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise ValueError("pictures need matplotlib: pip install capsroute[paper].") from error
    figure = figure_class(figsize=(7, 0.42 * len(lines) + 1.4), layout="constrained")
    axes = figure.subplots()
    for place, line in enumerate(reversed(lines)):
        colour = "#0b6fa4" if line.behind is None else "#7f8c99"
        axes.errorbar(100 * line.accuracy, place, xerr=100 * (line.spread or 0), fmt="o", color=colour, capsize=3)
        axes.annotate(
            f"{line.accuracy:.1%}",
            (100 * line.accuracy, place),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
        )
    axes.set_yticks(range(len(lines)), [line.model for line in reversed(lines)])
    axes.set_ylim(-0.6, len(lines) - 0.2)
    axes.set_xlabel("test accuracy in %, mean and standard deviation over seeds")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def _paired(best: Mapping[int, Any], other: Mapping[int, Any]) -> tuple[float, float | None, float | None]:
    """Mean difference and the two p-values, over the seeds that both have."""
    stats: Any = import_module("scipy.stats")
    seeds = sorted(best.keys() & other.keys())
    if not seeds:
        return float("nan"), None, None
    differences = np.array([best[seed]["accuracy"] - other[seed]["accuracy"] for seed in seeds])
    if len(seeds) < 2 or not differences.any():
        return float(differences.mean()), None if len(seeds) < 2 else 1.0, None if len(seeds) < 2 else 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ties and few seeds make scipy fall back, which is as it should be
        t = stats.ttest_1samp(differences, 0.0)
        w = stats.wilcoxon(differences)
    return float(differences.mean()), float(t.pvalue), float(w.pvalue)


def _holm(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Holm's correction: the smallest p times their number, the next times one less, never falling."""
    known = sorted(((p, name) for name, p in values.items() if p is not None))
    corrected: dict[str, float | None] = dict.fromkeys(values)
    highest = 0.0
    for place, (p, name) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - place)))
        corrected[name] = highest
    return corrected


def _mean(runs: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(np.mean([run[name] for run in runs]))


def _plus_minus(spread: float | None) -> str:
    return "" if spread is None else f" ± {100 * spread:.2f}"


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
