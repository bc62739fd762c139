"""The command line: every verb, its help, its errors, and what it leaves behind."""

import csv
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from capsroute import cli
from capsroute.text.labels import Labels
from tests.toy import SMALL, toy

VERBS = ["train", "evaluate", "predict", "explain", "compare", "check-data", "info", "demo"]
SETTINGS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={json.dumps(value)}")]


@dataclass
class Done:
    """What a verb gave."""

    code: int
    out: str
    err: str


class Runner:
    """Runs verbs in this process, as `main` does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def __call__(self, *arguments: object) -> Done:
        self.monkeypatch.setattr(sys, "argv", ["capsroute", *map(str, arguments)])
        self.capsys.readouterr()
        code: Any = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code or 0
        out, err = self.capsys.readouterr()
        return Done(code, out, err)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


def write_csv(file: Path, texts: list[str], labels: list[str]) -> Path:
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("id", "text", "label"), *zip(range(len(texts)), texts, labels, strict=True)])
    return file


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "data.csv", *toy())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from capsroute.classifier import CapsuleClassifier

    folder = tmp_path_factory.mktemp("saved") / "model"
    return CapsuleClassifier(settings=SMALL, seed=1).fit(*toy()).save_pretrained(folder)


def test_train_makes_a_model_that_predicts(run: Runner, data: Path, tmp_path: Path) -> None:
    done = run("train", data, "--out", tmp_path / "model", *SETTINGS)
    assert done.code == 0, done.err
    assert not done.out, "what is said goes to standard error"
    assert "60 rows of csv" in done.err
    assert "(guessed)" in done.err
    assert "none of 54" in done.err
    assert (tmp_path / "model" / "README.md").exists()
    assert (tmp_path / "model.run" / "history.jsonl").exists()


def test_train_as_json_prints_one_object_and_nothing_else(run: Runner, data: Path, tmp_path: Path) -> None:
    done = run("train", data, "-o", tmp_path / "m", "--json", "--routing", "dynamic", *SETTINGS, "--epochs", "1")
    assert done.code == 0, done.err
    assert json.loads(done.out)["measures"]["epochs"] == 1
    assert not done.err


def test_a_model_is_not_overwritten_unless_asked(run: Runner, data: Path, tmp_path: Path) -> None:
    arguments = ("train", data, "-o", tmp_path / "m", "-q", *SETTINGS, "--epochs", "1")
    assert run(*arguments).code == 0
    refused = run(*arguments)
    assert refused.code == 2
    assert "holds a model already" in refused.err
    assert run(*arguments, "--force").code == 0


def test_evaluate_measures(run: Runner, model: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "test.csv", *toy(30, seed=4))
    done = run("evaluate", model, file, "--json", "--confusion", tmp_path / "confusion.png")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["texts"] == 30
    assert sum(map(sum, report["confusion"])) == 30
    assert (tmp_path / "confusion.png").read_bytes().startswith(b"\x89PNG")
    shown = run("evaluate", model, file)
    assert f"accuracy {report['accuracy']:.1%}" in shown.out
    assert "precision" in shown.out


def test_evaluate_names_a_label_it_never_saw(run: Runner, model: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "test.csv", ["fine", "sad"], ["good", "badd"])
    done = run("evaluate", model, file)
    assert done.code == 2
    assert "row 2" in done.err
    assert "'badd'; did you mean 'bad'?" in done.err


def test_as_many_lines_out_as_in(run: Runner, model: Path, tmp_path: Path) -> None:
    lines = ["a lovely day", "", "sad", "  ", 'quotes " and, commas', "no\x00thing", "🙂 雨"]
    file = tmp_path / "lines.txt"
    file.write_bytes("\r\n".join(lines).encode())
    for form in ("tsv", "csv", "jsonl"):
        done = run("predict", model, file, "--format", form)
        assert done.code == 0, done.err
        assert len(done.out.splitlines()) == len(lines)
    assert done.out.splitlines()[0] == '{"labels": ["good"]}'


def test_predict_gives_the_best_labels_with_their_probabilities(run: Runner, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("a lovely day\nsad\n")
    done = run("predict", model, file, "--top", "2", "--proba")
    first, second = (line.split("\t") for line in done.out.splitlines())
    assert (first[0], second[0]) == ("good", "bad")
    assert float(first[1]) + float(first[3]) == pytest.approx(1, abs=1e-5)
    assert float(first[1]) > float(first[3])


def test_predict_keeps_the_ids_of_a_table(run: Runner, model: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "table.csv", *toy(5, seed=6))
    done = run("predict", model, file, "--format", "jsonl")
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == ["0", "1", "2", "3", "4"]


def test_explain_shows_and_writes(run: Runner, model: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "why.html", tmp_path / "why.png"
    done = run("explain", model, "the day was lovely", "--html", page, "--png", picture)
    assert done.code == 0, done.err
    assert "lovely" in done.out
    assert "lovely" in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    told = json.loads(run("explain", model, "the day was lovely", "--json").out)
    assert told["text"] == "the day was lovely"
    wrong = run("explain", model, "a text", "--class", "goood")
    assert wrong.code == 2
    assert "did you mean 'good'?" in wrong.err


def test_compare_makes_rows_a_table_and_a_plot_and_does_nothing_twice(
    run: Runner, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    models = ("--models", "dynamic,ngrams,tfidf")
    arguments = ("compare", data, "--test", "0.3", *models, "--seeds", "2", "-o", out, *SETTINGS, "--epochs", "2")
    done = run(*arguments, "--json")
    assert done.code == 0, done.err
    assert len(json.loads(done.out)["models"]) == 3
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert {(row["model"], row["seed"]) for row in rows} == {
        (model, seed) for model in ("dynamic", "ngrams", "tfidf") for seed in (0, 1)
    }
    assert (out / "table.md").read_text().count("\n|") >= 3
    assert (out / "plot.png").read_bytes().startswith(b"\x89PNG")
    written = (out / "rows.jsonl").read_text()
    (out / "rows.jsonl").write_text(written + '{"model": "dyn')  # killed while it wrote
    again = run(*arguments)
    assert "6 runs are there, 0 are missing" in again.err
    assert (out / "rows.jsonl").read_text() == written
    other = run("compare", data, "--test", "0.4", *models, "-o", out)
    assert other.code == 2
    assert "holds runs of another comparison" in other.err


def test_check_data_finds_what_would_spoil_training(run: Runner, data: Path, tmp_path: Path) -> None:
    fine = run("check-data", data, "--json")
    assert fine.code == 0, fine.err
    assert json.loads(fine.out)["labels"] == {"bad": 30, "good": 30}
    bad = write_csv(tmp_path / "bad.csv", ["one", "two", ""], ["same", "same", "same"])
    found = run("check-data", bad)
    assert found.code == 1
    assert "problem: " in found.out
    leak = run("check-data", data, "--test", data)
    assert "warning: texts of the test part that are in the training part too" in " ".join(leak.out.split())


def test_info(run: Runner, model: Path) -> None:
    about = json.loads(run("info", "--json").out)
    assert "graph" in about["routings"]
    assert "vader" in about["named corpora"]
    facts = json.loads(run("info", model, "--json").out)
    assert facts["labels"] == ["bad", "good"]
    assert "parameters" in run("info", model).out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("train", "nothing.csv", "-o", "m"), "nothing.csv"),
        (("train", "{folder}/empty.csv", "-o", "m"), "empty"),
        (("train", "{folder}/data.csv", "-o", "m", "--label", "lable"), "did you mean 'label'"),
        (("train", "{folder}/data.csv", "-o", "m", "--text", "txt"), "did you mean 'text'"),
        (("train", "{folder}/one.csv", "-o", "m"), "at least two different labels"),
        (("train", "{folder}/latin.csv", "-o", "m"), "UTF-8"),
        (("train", "{folder}/ragged.csv", "-o", "m"), "ragged.csv"),
        (("train", "{folder}/data.csv", "-o", "m", "--set", "dims=3"), "did you mean 'dim'"),
        (("train", "{folder}/data.csv", "-o", "m", "--set", "dim"), "not of the form key=value"),
        (("train", "{folder}/data.csv", "-o", "m", "--routing", "grahp"), "did you mean 'graph'"),
        (("train", "{folder}/data.csv", "-o", "m", "--preset", "papr"), "did you mean 'paper'"),
        (("train", "{folder}/data.csv", "-o", "{folder}"), "choose another"),
        (("train", "{folder}/data.csv", "-o", "m", "--device", "tpu9"), "tpu9"),
        (("evaluate", "{folder}/no_model", "{folder}/data.csv"), "the folder does not exist"),
        (("evaluate", "{folder}/data.csv", "{folder}/data.csv"), "a model is a folder"),
        (("predict", "{folder}", "-"), "is no model"),
        (("info", "{folder}"), "is no model"),
        (("compare", "{folder}/data.csv", "-o", "m"), "compare needs test texts"),
        (("compare", "{folder}/data.csv", "--test", "0.2", "-o", "m", "--models", "graf"), "did you mean 'graph'"),
        (("check-data", "vadr", "--data", "{folder}"), "did you mean 'vader'"),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(
    run: Runner, data: Path, arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = data.parent
    monkeypatch.chdir(folder)
    (folder / "empty.csv").touch()
    (folder / "one.csv").write_text("text,label\n" + "a,x\nb,x\n" * 10)
    (folder / "latin.csv").write_bytes("text,label\ncafé,x\nthé,y\n".encode("latin-1"))
    (folder / "ragged.csv").write_text("text,label\na,x\nb,y,z,w\n")
    before = sorted(folder.iterdir())
    done = run(*(part.format(folder=folder) for part in arguments))
    assert done.code == 2, done.err
    assert sentence in done.err
    assert "Traceback" not in done.err
    last = done.err.strip().splitlines()[-1]
    assert last.startswith("capsroute: ")
    assert len(last) < 600
    left = [path for path in sorted(folder.iterdir()) if path not in before]
    assert not [path for path in left if not path.name.endswith(".run") and path.name != "m"], "nothing half-written"


def test_malformed_rows_can_be_skipped_and_are_counted(run: Runner, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "data.csv", *toy())
    with file.open("a") as stream:
        stream.write("61,too,many,fields\n")
    assert run("train", file, "-o", tmp_path / "m", *SETTINGS).code == 2
    done = run("train", file, "-o", tmp_path / "m", *SETTINGS, "--on-error", "skip", "--epochs", "1")
    assert done.code == 0, done.err
    assert "1 rows skipped" in done.err or "1 row skipped" in done.err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(run: Runner, verb: str) -> None:
    done = run(verb, "--help")
    assert done.code == 0
    assert "Usage: " in done.out
    assert "--help" in done.out


def test_help_and_version_answer_at_once() -> None:
    """Nothing heavy is imported for them; the time itself is a benchmark's matter."""
    code = "import sys; sys.argv = ['capsroute', '--help']; from capsroute.cli import app; app(standalone_mode=False)"
    check = "; import sys; assert not {'torch', 'sklearn', 'pyarrow', 'tokenizers'} & set(sys.modules), sys.modules"
    done = subprocess.run([sys.executable, "-c", code + check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for verb in VERBS:
        assert verb in done.stdout
    started = time.perf_counter()
    version = subprocess.run(
        [sys.executable, "-m", "capsroute.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert version.stdout.startswith("capsroute ")
    assert time.perf_counter() - started < 5


def test_predict_streams_from_standard_input(model: Path) -> None:
    command = [sys.executable, "-m", "capsroute.cli", "predict", str(model)]
    done = subprocess.run(command, input="a lovely day\nsad\n", capture_output=True, text=True, check=True)
    assert done.stdout == "good\nbad\n"
    assert not done.stderr


def test_labels_of_the_fixture_are_what_the_tests_say() -> None:
    assert Labels.of(toy()[1]).names == ["bad", "good"]
