"""What the verbs of the command line do: each a function that can be called from Python too."""

import platform
import shutil
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from capsroute._version import __version__
from capsroute.checks import at_least, one_of, unknown
from capsroute.classifier import CapsuleClassifier
from capsroute.evaluation import Report, draw_confusion, measure
from capsroute.explain import print_explanations, write_html, write_image
from capsroute.explain.render import one_line
from capsroute.lines import Format, line, text_blocks
from capsroute.plan import make_plan
from capsroute.routing import ROUTINGS
from capsroute.store import check_place, is_model
from capsroute.text import SOURCES, DataReport, check_data, load_source, read_corpus
from capsroute.text.corpus import Corpus
from capsroute.text.files import existing
from capsroute.training.config import make_device
from capsroute.training.progress import ProgressName

Say = Callable[[str], None]


def read_data(
    data: str,
    *,
    text: str | None = None,
    label: str | None = None,
    data_folder: Path | None = None,
    on_error: str = "fail",
    seed: int = 0,
) -> tuple[Corpus, Corpus | None]:
    """Texts to learn from, and the test part where the corpus is a named one and has its own."""
    if data in SOURCES and not Path(data).exists():
        split = load_source(data, data_folder, seed=seed)
        return split.train, split.test
    if data_folder is not None:
        raise unknown("corpus", data, SOURCES)
    if is_model(Path(data)):
        raise ValueError(f"'{data}' is a saved model, but labelled texts are wanted here.")
    return read_corpus(data, text=text, label=label, on_error=on_error), None  # pyright: ignore


def train_model(
    data: str,
    out: Path,
    *,
    valid: str | None,
    text: str | None,
    label: str | None,
    data_folder: Path | None,
    preset: str,
    network: str,
    routing: str | None,
    settings: Mapping[str, Any],
    seed: int,
    device: str,
    on_error: str,
    resume: bool,
    force: bool,
    say: Say,
    progress: ProgressName,
) -> dict[str, Any]:
    """Train and save; the facts of the model's card."""
    # What can be refused is refused before anything is read, and long before anything is learned.
    check_place(out, force=force)
    plan = make_plan(preset, network=network, routing=routing, settings={**settings, "seed": seed, "device": device})
    plan.try_out()
    make_device(device)
    share, other = _validation(valid)
    run = out.with_name(f"{out.name}.run")
    if force and not resume and (run / "training.json").exists():
        shutil.rmtree(run)
    learn, _ = read_data(data, text=text, label=label, data_folder=data_folder, on_error=on_error, seed=seed)
    say(learn.describe())
    model = CapsuleClassifier(
        preset=preset,
        network=network,
        routing=routing,
        settings=settings,
        validation=share,
        seed=seed,
        device=device,
        folder=run,
        resume=resume,
        progress=progress,
    )
    aside = None if other is None else read_corpus(other, text=text, label=label, on_error=on_error)  # pyright: ignore
    model.fit(learn, X_valid=aside, announce=say)
    model.save_pretrained(out, force=force)
    say(f"saved to {out} (checkpoints and history in {run})")
    return {"model": str(out), "run": str(run), **model.facts_}


def evaluate_model(
    folder: Path,
    data: str,
    *,
    text: str | None,
    label: str | None,
    data_folder: Path | None,
    on_error: str,
    worst: int,
    confusion: Path | None,
) -> tuple[Report, Corpus]:
    """Measure a saved model; of a named corpus the test part is read."""
    at_least("errors", worst, 0)
    _can_write(confusion, ".png", ".svg", ".pdf")
    _models_first(folder, data)
    model = CapsuleClassifier.from_pretrained(folder)
    learn, test = read_data(data, text=text, label=label, data_folder=data_folder, on_error=on_error)
    corpus = learn if test is None else test
    known = [str(name) for name in model.classes_]
    for row, given in enumerate(corpus.labels):
        for name in [given] if isinstance(given, str) else given:
            if name not in known:
                raise ValueError(f"row {row + 1} of '{corpus.file}': {unknown('label', name, known)}")
    probabilities = model.predict_proba(corpus)
    report = measure(corpus.labels, probabilities, classes=known, thresholds=model.thresholds_, worst=worst)
    if confusion is not None:
        draw_confusion(report, confusion)
    return report, corpus


def show_report(report: Report, corpus: Corpus) -> None:
    """Measures, classes and the worst mistakes, for a person."""
    console = Console()
    console.print(
        f"accuracy {report.accuracy:.1%}   macro-F1 {report.macro_f1:.1%}   micro-F1 {report.micro_f1:.1%}"
        + ("" if report.calibration_error is None else f"   calibration error {report.calibration_error:.1%}")
        + f"   ({report.texts:,} texts)",
        soft_wrap=True,
    )
    table = Table("label", "texts", "precision", "recall", "F1", box=None)
    for row in report.classes:
        table.add_row(
            Text(one_line(row.label, 60)),
            f"{row.texts:,}",
            *(_share(part) for part in (row.precision, row.recall, row.f1)),
        )
    console.print(table)
    if report.mistakes:
        console.print("\nworst mistakes")
    for mistake in report.mistakes:
        (found,) = corpus.texts(mistake.row, mistake.row + 1)
        said = f"row {mistake.row + 1}: {mistake.label} taken for {mistake.predicted} ({mistake.probability:.0%})"
        console.print(one_line(said), style="bold", markup=False, highlight=False, soft_wrap=True)
        console.print("  " + one_line(found, 200), markup=False, highlight=False, soft_wrap=True)


def predict_lines(
    folder: Path,
    file: str,
    *,
    top: int,
    proba: bool,
    form: str,
    text: str | None,
    device: str,
    write: Callable[[str], object],
) -> None:
    """As many lines out as texts in, in their order, as soon as they are known."""
    one_of("format", form, get_args(Format))
    at_least("top", top, 1)
    _models_first(folder, file)
    blocks = text_blocks(file, text)
    model = CapsuleClassifier.from_pretrained(folder, device=device)
    names = [str(name) for name in model.classes_]
    for ids, texts in blocks:
        probabilities = model.predict_proba(texts)
        several = model.decide(probabilities) if model.thresholds_ is not None and top == 1 else None
        lines: list[str] = []
        for place, name in enumerate(ids):
            row = probabilities[place]
            best = [int(label) for label in (-row).argsort(kind="stable")[:top]]
            labels = [names[label] for label in best] if several is None else [str(label) for label in several[place]]
            shares = [float(row[names.index(label)]) for label in labels] if proba else None
            lines.append(line(form, name, labels, shares))
        write("".join(lines))


def explain_text(
    folder: Path, text: str, *, label: str | None, html: Path | None, png: Path | None, show: bool
) -> dict[str, Any]:
    """Explain one prediction in the terminal, as a page, as a picture and as JSON."""
    _can_write(html)
    _can_write(png, ".png", ".svg")
    model = CapsuleClassifier.from_pretrained(folder)
    names = [str(name) for name in model.classes_]
    if label is not None and label not in names:
        raise unknown("label", label, names)
    found = model.explain(text)
    if not found.tokens:
        raise ValueError("the text has no words, so there is nothing to explain.")
    if show:
        print_explanations([found], label=label)
    if html is not None:
        write_html([found], html, label=label)
    if png is not None:
        write_image([found], png, label=label)
    return found.to_json()


def inspect_data(
    data: str,
    *,
    test: str | None,
    text: str | None,
    label: str | None,
    data_folder: Path | None,
    on_error: str,
) -> DataReport:
    """Look for what would spoil training."""
    learn, own_test = read_data(data, text=text, label=label, data_folder=data_folder, on_error=on_error)
    other = own_test if test is None else read_corpus(test, text=text, label=label, on_error=on_error)  # pyright: ignore
    return check_data(learn, other)


def show_inspection(report: DataReport) -> None:
    """A data report for a person."""
    console = Console()
    show_facts({name: value for name, value in report.to_json().items() if name not in ("problems", "warnings")})
    for problem in report.problems:
        console.print(f"problem: {problem}", style="bold red", markup=False, highlight=False, soft_wrap=True)
    for warning in report.warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    if not report.problems and not report.warnings:
        console.print("nothing to mend")


def run_benchmarks(
    question: str, *, threads: int | None, data: Path | None, out: Path | None, smoke: bool, show: bool
) -> list[dict[str, Any]]:
    """The rows of one question or all; shown as they come."""
    try:
        benchmarks: Any = import_module("benchmarks")
        report: Any = import_module("benchmarks.report")
    except ModuleNotFoundError as error:
        raise ValueError(
            "the benchmarks are in the repository, not in the installed package: run `capsroute bench` in a checkout "
            "that was installed with `pip install -e .`."
        ) from error
    one_of("question", question, (*benchmarks.QUESTIONS, "all"))
    if threads is not None:
        at_least("threads", threads, 1)
    asked = benchmarks.QUESTIONS if question == "all" else (question,)
    rows: list[dict[str, Any]] = []
    for of_question in benchmarks.run(asked, out=out, smoke=smoke, threads=threads, data=data):
        rows += of_question
        if show:
            report.show(of_question, Console())
    return rows


def information(folder: Path | None) -> dict[str, Any]:
    """Facts of a saved model, or of this installation."""
    if folder is None:
        return {
            "capsroute": __version__,
            "Python": platform.python_version(),
            "PyTorch": torch.__version__,
            "device": "cuda" if torch.cuda.is_available() else "cpu",
            "routings": list(ROUTINGS),
            "named corpora": list(SOURCES),
        }
    model = CapsuleClassifier.from_pretrained(folder)
    weights = sum(parameter.numel() for parameter in model.network_.parameters())
    return {
        "model": str(folder),
        "network": model.network,
        "routing": model.routing,
        "labels": [str(name) for name in model.classes_],
        "several labels a text": model.thresholds_ is not None,
        "parameters": weights,
        **model.facts_.get("data", {}),
        **model.facts_.get("measures", {}),
        **model.facts_.get("versions", {}),
    }


def show_facts(facts: Mapping[str, Any]) -> None:
    """Names and values, one a line."""
    console = Console()
    for name, value in facts.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            shown = ", ".join(f"{key} {_plain(part)}" for key, part in value.items())  # pyright: ignore
        elif isinstance(value, list | tuple):
            shown = ", ".join(map(str, value))  # pyright: ignore
        else:
            shown = _plain(value)
        console.print(f"{str(name).replace('_', ' ')}: {shown}", markup=False, highlight=False, soft_wrap=True)


def _validation(valid: str | None) -> tuple[float, str | None]:
    """The option --valid: a share of the training texts, or a file."""
    if valid is None:
        return 0.1, None
    try:
        share = float(valid)
    except ValueError:
        return 0.1, str(existing(Path(valid))) if valid != "-" else valid
    if not 0 <= share < 1:
        raise ValueError(f"valid must be a file or a share from 0 (none) to below 1, but is {valid}.")
    return share, None


def _models_first(model: Path, data: str) -> None:
    """Say which is which when a model and a file were given in the wrong order."""
    if is_model(Path(data)) and not is_model(model):
        raise ValueError(f"'{data}' is the model and comes first, before '{model}'.")


def _can_write(file: Path | None, *endings: str) -> None:
    """Refuse the place of a result before there is one."""
    if file is None:
        return
    if endings:
        one_of(f"ending of '{file}'", file.suffix.lower(), endings)
    if file.is_dir():
        raise ValueError(f"'{file}' is a folder, but a file is to be written.")
    if not file.parent.is_dir():
        raise ValueError(f"cannot write '{file}': there is no folder '{file.parent}'.")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)
