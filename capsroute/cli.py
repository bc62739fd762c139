"""The command line: verbs -> functions, and errors in one sentence.

Nothing heavy is imported before a verb needs it, so that `--help` answers at once.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from capsroute.terminal import fail, print_json, sayer, sentence_of, settings_of, standard_input, write

app = typer.Typer(
    name="capsroute",
    help="Classify text with capsule networks, and see exactly why.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DATA_HELP = (
    "csv, tsv, jsonl, parquet or fastText file (also .gz, .zst), a folder of them, a datasets folder, - for standard "
    "input, or a named corpus such as 'vader'."
)
Data = Annotated[str, typer.Argument(help=DATA_HELP, show_default=False)]
Model = Annotated[Path, typer.Argument(help="Folder of a saved model.", show_default=False)]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column of the text; guessed if not given.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Column of the label; guessed if not given.")]
OnError = Annotated[str, typer.Option("--on-error", help="What a malformed row does: fail or skip.")]
Folder = Annotated[Path | None, typer.Option("--data", help="Folder of the files of a named corpus.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Seed = Annotated[int, typer.Option("--seed", help="Of everything random.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda...")]


@app.command()
def train(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.", show_default=False)],
    valid: Annotated[
        str | None, typer.Option("--valid", help="Texts to validate on, or a share such as 0.1.")
    ] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    data_folder: Folder = None,
    preset: Annotated[str, typer.Option(help="default, paper, capsule_a or capsule_b.")] = "default",
    network: Annotated[str, typer.Option(help="capsule, textcnn or ngrams.")] = "capsule",
    routing: Annotated[
        str | None, typer.Option(help="graph, dynamic, leaky, em, kde...; the preset's if none.")
    ] = None,
    change: Annotated[list[str] | None, typer.Option("--set", help="A setting, key=value; may be repeated.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the texts at most.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
    on_error: OnError = "fail",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is there.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a classifier on labelled texts."""
    from capsroute.commands import train_model

    settings = settings_of(change or [])
    if epochs is not None:
        settings["epochs"] = epochs
    facts = train_model(
        data,
        out,
        valid=valid,
        text=text,
        label=label,
        data_folder=data_folder,
        preset=preset,
        network=network,
        routing=routing,
        settings=settings,
        seed=seed,
        device=device,
        on_error=on_error,
        resume=resume,
        force=force,
        say=sayer(quiet or as_json),
        progress="none" if quiet or as_json else "auto",
    )
    if as_json:
        print_json(facts)


@app.command()
def evaluate(
    model: Model,
    data: Data,
    text: TextColumn = None,
    label: LabelColumn = None,
    data_folder: Folder = None,
    on_error: OnError = "fail",
    mistakes: Annotated[int, typer.Option("--errors", help="How many of the worst mistakes to show.")] = 10,
    confusion: Annotated[Path | None, typer.Option("--confusion", help="Draw the confusion matrix as a PNG.")] = None,
    as_json: Json = False,
) -> None:
    """Measure a model on labelled texts."""
    from capsroute.commands import evaluate_model, show_report

    report, corpus = evaluate_model(
        model,
        data,
        text=text,
        label=label,
        data_folder=data_folder,
        on_error=on_error,
        worst=mistakes,
        confusion=confusion,
    )
    if as_json:
        print_json(report.to_json())
    else:
        show_report(report, corpus)


@app.command()
def predict(
    model: Model,
    file: Annotated[
        str, typer.Argument(help="A text a line; or csv, tsv, jsonl... with --text; - is standard input.")
    ] = "-",
    top: Annotated[int, typer.Option("--top", help="How many labels to name.")] = 1,
    proba: Annotated[bool, typer.Option("--proba", help="Their probabilities too.")] = False,
    format_: Annotated[str, typer.Option("--format", help="jsonl, csv or tsv.")] = "tsv",
    text: TextColumn = None,
    device: Device = "cpu",
) -> None:
    """Label texts: as many lines out as in, in the same order."""
    from capsroute.commands import predict_lines

    predict_lines(model, file, top=top, proba=proba, form=format_, text=text, device=device, write=write)


@app.command()
def explain(
    model: Model,
    text: Annotated[str, typer.Argument(help="The text; - reads it from standard input.", show_default=False)],
    label: Annotated[
        str | None, typer.Option("--class", help="The label to explain; the predicted one if none.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page.")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="Draw a picture.")] = None,
    as_json: Json = False,
) -> None:
    """Show which words made the decision."""
    from capsroute.commands import explain_text

    content = standard_input() if text == "-" else text
    found = explain_text(model, content, label=label, html=html, png=png, show=not as_json)
    if as_json:
        print_json(found)


@app.command()
def compare(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for rows, tables and plot.", show_default=False)],
    test: Annotated[str | None, typer.Option("--test", help="Texts to test on, or a share such as 0.2.")] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    data_folder: Folder = None,
    models: Annotated[
        str, typer.Option("--models", help="Routings, textcnn, ngrams, tfidf, tfidf-chars; with commas.")
    ] = "graph,dynamic,leaky,em,kde,textcnn,ngrams,tfidf,tfidf-chars",
    seeds: Annotated[int, typer.Option("--seeds", help="Runs of each.")] = 5,
    preset: Annotated[str, typer.Option(help="default, paper, capsule_a or capsule_b.")] = "default",
    change: Annotated[list[str] | None, typer.Option("--set", help="A setting of all, key=value.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the texts at most.")] = None,
    on_error: OnError = "fail",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run several models on the same texts, splits, seeds and budget. Finished runs are not run again."""
    from capsroute.compare import compare_models

    settings = settings_of(change or [])
    if epochs is not None:
        settings["epochs"] = epochs
    summary = compare_models(
        data,
        out,
        test=test,
        text=text,
        label=label,
        data_folder=data_folder,
        models=[name.strip() for name in models.split(",") if name.strip()],
        seeds=seeds,
        preset=preset,
        settings=settings,
        on_error=on_error,
        say=sayer(quiet or as_json),
    )
    if as_json:
        print_json(summary)


@app.command("check-data")
def check_data(
    data: Data,
    test: Annotated[str | None, typer.Option("--test", help="Test texts, to look for leaks.")] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    data_folder: Folder = None,
    on_error: OnError = "skip",
    as_json: Json = False,
) -> None:
    """Look for what would spoil training. Exit code 1 if something must be mended."""
    from capsroute.commands import inspect_data, show_inspection

    report = inspect_data(data, test=test, text=text, label=label, data_folder=data_folder, on_error=on_error)
    if as_json:
        print_json(report.to_json())
    else:
        show_inspection(report)
    if report.problems:
        raise typer.Exit(1)


@app.command()
def info(
    model: Annotated[Path | None, typer.Argument(help="Folder of a saved model; none: about this program.")] = None,
    as_json: Json = False,
) -> None:
    """What a model is, or what this installation is."""
    from capsroute.commands import information, show_facts

    facts = information(model)
    if as_json:
        print_json(facts)
    else:
        show_facts(facts)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for everything that the demo makes.")] = Path(
        "runs/demo"
    ),
    epochs: Annotated[int | None, typer.Option(help="Fewer passes, to be done sooner.")] = None,
) -> None:
    """Train on an embedded corpus, compare, and explain: what capsroute does, in five minutes."""
    from capsroute.demo import run_demo

    run_demo(out, epochs=epochs)


@app.command()
def bench(
    question: Annotated[
        str, typer.Argument(help="routing, step, corpus, vocabulary, classes, predict or all.")
    ] = "all",
    threads: Annotated[int | None, typer.Option("--threads", help="Of torch; as many as it takes if none.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Folder of AG News, for corpus; else VADER.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder to append rows to and draw in.")] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Tiny sizes: only to see that all of it runs.")] = False,
    as_json: Json = False,
) -> None:
    """Measure speed and memory against a textbook implementation and the machine's own limits."""
    from capsroute.commands import run_benchmarks

    rows = run_benchmarks(question, threads=threads, data=data, out=out, smoke=smoke, show=not as_json)
    if as_json:
        print_json({"rows": rows})


@app.callback(invoke_without_command=True)
def version_option(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Options before the verb."""
    if version:
        from capsroute import __version__

        typer.echo(f"capsroute {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a verb; what a user did wrong is one sentence and exit code 2, a stopped run 130."""
    try:
        sys.exit(app(sys.argv[1:] or ["--help"], standalone_mode=False))
    except (KeyboardInterrupt, typer.Abort):
        fail("stopped.", code=130)
    except Exception as error:  # sorted below; what is no user's fault goes on as it is
        if type(error).__name__ == "Interrupted":
            fail(str(error), code=130)
        # typer's own exceptions have no common class with a public name, but all can say what they mean.
        usage: Callable[[], str] | None = getattr(error, "format_message", None)
        if usage is not None:
            said = " ".join(usage().split())
            fail(f"{said}{'' if said.endswith(('.', '?')) else '.'} See --help.")
        if isinstance(error, ValueError | OSError | ImportError):
            fail(sentence_of(error))
        raise


if __name__ == "__main__":
    main()
