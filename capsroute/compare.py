"""Several models on the same texts, splits, seeds and budget: one row a run, a table, a plot, honest differences.

A run is one model with one seed, in a process of its own, so that its peak memory is its own and nothing of the run
before is left. Its row is appended to rows.jsonl when it is done; a row that is there is not made again. The seed
decides the split, the validation part and the initial weights, so runs of one seed are pairs.

    tfidf         words and pairs of words, sublinear TF-IDF, logistic regression with C = 1
    tfidf-chars   the same with characters 2 to 5 within words
"""

import json
import multiprocessing
import os
import resource
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console

from capsroute.checks import at_least, unknown
from capsroute.classifier import CapsuleClassifier
from capsroute.commands import read_data
from capsroute.machine import provenance
from capsroute.routing import ROUTINGS
from capsroute.summary import draw_summary, markdown, summarise, write_csv
from capsroute.text import read_corpus
from capsroute.text.corpus import Corpus
from capsroute.training.files import replace_text
from capsroute.training.hold_out import hold_out
from capsroute.training.metrics import accuracy, macro_f1

LINEAR = ("tfidf", "tfidf-chars")
NETWORKS = ("textcnn", "ngrams")


@dataclass(frozen=True)
class Task:
    """What is compared, as it is handed to the process of a run."""

    data: str
    test: str | None
    text: str | None
    label: str | None
    data_folder: Path | None
    preset: str
    settings: dict[str, Any]
    on_error: str


def compare_models(
    data: str,
    out: Path,
    *,
    test: str | None = None,
    text: str | None = None,
    label: str | None = None,
    data_folder: Path | None = None,
    models: Sequence[str],
    seeds: int = 5,
    preset: str = "default",
    settings: Mapping[str, Any] | None = None,
    on_error: str = "fail",
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run what is missing, then write rows.jsonl, table.md, table.csv and plot.png into `out`."""
    at_least("seeds", seeds, 1)
    valid = [*ROUTINGS, *NETWORKS, *LINEAR]
    for model in models:
        if model not in valid:
            raise unknown("model", model, valid)
    task = Task(data, test, text, label, data_folder, preset, dict(settings or {}), on_error)
    out.mkdir(parents=True, exist_ok=True)
    rows = _rows(out / "rows.jsonl", task)
    done = {(row["model"], row["seed"]) for row in rows}
    todo = [(model, seed) for seed in range(seeds) for model in models if (model, seed) not in done]
    if done:
        say(f"{len(done)} runs are there, {len(todo)} are missing")
    for number, (model, seed) in enumerate(todo, 1):
        row = _in_a_process(task, model, seed)
        rows.append(row)
        with (out / "rows.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        say(f"[{number}/{len(todo)}] {model}, seed {seed}: {row['accuracy']:.1%} in {row['seconds']:.0f} s")
    wanted = [row for row in rows if row["model"] in models and row["seed"] < seeds]
    summary = summarise(wanted, models)
    command = "capsroute " + " ".join(sys.argv[1:]) if sys.argv[1:2] == ["compare"] else "compare_models(...)"
    replace_text(out / "table.md", markdown(summary, task=_plain(task), command=command))
    write_csv(summary, out / "table.csv")
    draw_summary(summary, out / "plot.png")
    say(f"rows.jsonl, table.md, table.csv and plot.png are in {out}")
    return {"out": str(out), "models": [asdict(line) for line in summary]}


def run_once(task: Task, model: str, seed: int) -> dict[str, Any]:
    """Train a model on the split of the seed, and measure it once on the test part."""
    learn, test = parts(task, seed)
    started = perf_counter()
    if model in LINEAR:
        predicted, facts = _linear(model, learn, test)
    else:
        predicted, facts = _network(task, model, seed, learn, test)
    seconds = perf_counter() - started
    classes = sorted({*learn.labels, *test.labels, *predicted})  # pyright: ignore
    number = {name: place for place, name in enumerate(classes)}
    targets = np.array([number[name] for name in test.labels])  # pyright: ignore
    found = np.array([number[name] for name in predicted])
    return {
        "model": model,
        "seed": seed,
        "accuracy": accuracy(targets, found),
        "macro_f1": macro_f1(targets, found, classes=len(classes)),
        "seconds": round(seconds, 2),
        "memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "train": len(learn),
        "test": len(test),
        **facts,
        **provenance(),
        "task": _plain(task),
    }


def parts(task: Task, seed: int) -> tuple[Corpus, Corpus]:
    """The training and test texts of a seed."""
    learn, test = read_data(
        task.data,
        text=task.text,
        label=task.label,
        data_folder=task.data_folder,
        on_error=task.on_error,
        seed=seed,
    )
    if test is None and task.test is None:
        raise ValueError("compare needs test texts: give --test a file, or a share such as 0.2.")
    if task.test is not None:
        try:
            share = float(task.test)
        except ValueError:
            test = read_corpus(task.test, text=task.text, label=task.label, on_error=task.on_error)  # pyright: ignore
        else:
            _, numbers = np.unique(np.array(learn.labels), return_inverse=True)  # pyright: ignore
            rows, aside = hold_out(numbers, share=share, seed=seed)
            learn, test = learn.take(rows), learn.take(aside)
    assert test is not None
    if learn.several_labels:
        raise ValueError("compare measures texts with one label each, but these may have several.")
    return learn, test


def linear_model(name: str) -> Any:
    """TF-IDF and logistic regression, from scikit-learn."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union  # pyright: ignore[reportUnknownVariableType]

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    if name == "tfidf":
        return make_pipeline(words, LogisticRegression(C=1, max_iter=1000))
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2)
    return make_pipeline(make_union(words, characters), LogisticRegression(C=1, max_iter=1000))


def _linear(name: str, learn: Corpus, test: Corpus) -> tuple[list[str], dict[str, Any]]:
    model = linear_model(name)
    model.fit(learn.texts(), learn.labels)
    return list(model.predict(test.texts())), {"parameters": int(model[-1].coef_.size)}


def _network(task: Task, name: str, seed: int, learn: Corpus, test: Corpus) -> tuple[list[str], dict[str, Any]]:
    baseline = name in NETWORKS
    model = CapsuleClassifier(
        preset=task.preset,
        network=name if baseline else "capsule",
        routing=None if baseline else name,
        # Of the settings, a baseline takes those of the budget; it has other sizes.
        settings=_budget(task.settings) if baseline else task.settings,
        seed=seed,
    )
    model.fit(learn)
    best = next((row for row in model.training_.history if row.epoch == model.training_.best_epoch), None)
    weights = sum(parameter.numel() for parameter in model.network_.parameters())
    return [str(label) for label in model.predict(test)], {
        "parameters": weights,
        "valid_accuracy": None if best is None else best.valid_accuracy,
        "epochs": len(model.training_.history),
    }


def _budget(settings: Mapping[str, Any]) -> dict[str, Any]:
    shared = ("epochs", "batch_size", "patience", "max_length", "min_frequency", "lowercase", "punctuation")
    return {name: value for name, value in settings.items() if name in shared}


def _in_a_process(task: Task, model: str, seed: int) -> dict[str, Any]:
    with multiprocessing.get_context("spawn").Pool(1, initializer=_leave_with_the_parent) as pool:
        return pool.apply(run_once, (task, model, seed))


def _leave_with_the_parent() -> None:
    """End this process when the one that started it is gone: killed, that one cannot say so."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _rows(file: Path, task: Task) -> list[dict[str, Any]]:
    """The rows of earlier runs; a last line that was cut short by a kill is left out and run again."""
    if not file.exists():
        return []
    rows: list[dict[str, Any]] = []
    lines = file.read_text(encoding="utf-8").splitlines()
    for place, line in enumerate(lines):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            if place != len(lines) - 1:
                raise ValueError(f"line {place + 1} of '{file}' is no row: mend or delete the file.") from error
            replace_text(file, "".join(f"{line}\n" for line in lines[:place]))
    for row in rows:
        if row["task"] != _plain(task):
            raise ValueError(f"'{file}' holds runs of another comparison: choose another folder for --out.")
    return rows


def _plain(task: Task) -> dict[str, Any]:
    """The task as a row keeps it: without the folder of this machine in which published files happen to lie."""
    return {name: value for name, value in asdict(task).items() if name != "data_folder"}


def show_table(text: str) -> None:
    """A Markdown table on the terminal."""
    Console().print(text, markup=False, highlight=False)
