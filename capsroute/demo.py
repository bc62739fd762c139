"""`capsroute demo`: train on an embedded corpus, compare with what one would otherwise use, and say why.

Every step leaves its result in the folder and is not done again, and training goes on from its last checkpoint: a
demo that was stopped can be started again.
"""

import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from capsroute.classifier import CapsuleClassifier
from capsroute.compare import Task, run_once
from capsroute.evaluation import draw_confusion, measure
from capsroute.explain import print_explanations, write_html, write_image
from capsroute.explain.picture_layout import matplotlib
from capsroute.store import is_model
from capsroute.text import load_source
from capsroute.text.corpus import Corpus
from capsroute.training.files import replace_text

CORPUS = "vader"
RIVALS = {"textcnn": "TextCNN", "ngrams": "bag of n-grams", "tfidf": "TF-IDF + logistic regression"}
EPOCHS = 6
SHOWN = 3
CHECKPOINT_SECONDS = 5.0
"""Little is lost of a demo that is stopped: a checkpoint takes a fraction of a second."""


def run_demo(out: Path, *, epochs: int | None = None) -> None:
    """Everything, into one folder."""
    started = perf_counter()
    console = Console()
    matplotlib("figure")  # the pictures come last: what they need is missed now and not then
    out.mkdir(parents=True, exist_ok=True)
    split = load_source(CORPUS)
    console.print(f"{CORPUS}: {len(split.train):,} human-rated texts to learn from, {len(split.test):,} to test on")
    model = _model(out, split.train, EPOCHS if epochs is None else epochs, console)
    probabilities = model.predict_proba(split.test)
    names = [str(name) for name in model.classes_]
    report = measure(split.test.labels, probabilities, classes=names)
    draw_confusion(report, out / "confusion.png")
    rows = [{"model": "capsroute, graph routing", "accuracy": report.accuracy, "macro_f1": report.macro_f1}]
    rows += _rivals(out, EPOCHS if epochs is None else epochs, console)
    _show(rows, console)
    chosen = _instructive(split.test, probabilities, model)
    reasons = [model.explain(text) for text in chosen]
    print_explanations(reasons)
    write_html(reasons, out / "explanations.html")
    write_image(reasons, out / "explanations.png")
    console.print(f"\nDone in {perf_counter() - started:.0f} s. In {out}:", markup=False, highlight=False)
    for name, what in {
        "model/": "the classifier; model/README.md is its card",
        "explanations.html": "the three decisions above, to look at in a browser",
        "explanations.png": "the same as a picture",
        "confusion.png": "what is taken for what",
        "rivals.jsonl": "the runs of the table",
    }.items():
        console.print(f"  {name:18} {what}", highlight=False)
    console.print("\nTry next:")
    for line in (
        f'capsroute explain {out}/model "the plot is thin, but what a cast"',
        f"capsroute predict {out}/model your_texts.txt --proba",
        "capsroute train your_file.csv --out my_model",
    ):
        console.print(f"  {line}", markup=False, highlight=False)


def _model(out: Path, learn: Corpus, epochs: int, console: Console) -> CapsuleClassifier:
    """The trained classifier: from the folder, from its checkpoint, or from the start."""
    folder = out / "model"
    if is_model(folder):
        console.print(f"the classifier is in {folder} already")
        return CapsuleClassifier.from_pretrained(folder)
    settings = {"epochs": epochs, "checkpoint_seconds": CHECKPOINT_SECONDS}
    model = CapsuleClassifier(settings=settings, folder=out / "run", resume=True, progress="auto")
    model.fit(learn, announce=console.print)
    model.save_pretrained(folder)
    return model


def _rivals(out: Path, epochs: int, console: Console) -> list[dict[str, Any]]:
    """The same texts through other models."""
    file = out / "rivals.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    task = Task(CORPUS, None, None, None, None, "default", {"epochs": epochs}, "fail")
    for name in RIVALS:
        if name in {row["model"] for row in rows}:
            continue
        with console.status(f"{RIVALS[name]}: the same texts"):
            rows.append(run_once(task, name, 0))
        replace_text(file, "".join(json.dumps(row) + "\n" for row in rows))
    return [{**row, "model": RIVALS[row["model"]]} for row in rows]


def _show(rows: list[dict[str, Any]], console: Console) -> None:
    table = Table("model", "test accuracy", "macro-F1", box=None, padding=(0, 3, 0, 0))
    for row in sorted(rows, key=lambda row: -row["accuracy"]):
        table.add_row(row["model"], f"{row['accuracy']:.1%}", f"{row['macro_f1']:.1%}")
    console.print()
    console.print(table)
    console.print()


def _instructive(test: Corpus, probabilities: NDArray[np.float64], model: CapsuleClassifier) -> list[str]:
    """A text of middling length for each label, rightly and surely labelled."""
    texts = test.texts()
    labels = np.array(test.labels)
    predicted = model.decide(probabilities)
    length = np.array([len(text.split()) for text in texts])
    good = (labels == predicted) & (length >= 10) & (length <= 30)
    sure = np.where(good, probabilities.max(axis=1), 0)
    chosen = [int(np.argmax(np.where(predicted == label, sure, 0))) for label in model.classes_[:SHOWN]]
    return [texts[row] for row in chosen]
