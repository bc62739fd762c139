"""The command line: every verb, its help, its errors, and what it leaves behind."""

import csv
import gzip
import json
import os
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

VERBS = ["train", "evaluate", "predict", "explain", "compare", "check-data", "info", "demo", "bench"]
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
        (("train", "{folder}/data.csv", "-o", "m", "--valid", "nothing.csv"), "there is no file 'nothing.csv'"),
        (("predict", "{folder}", "nothing.txt"), "there is no file 'nothing.txt'"),
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


def test_a_line_ends_with_lf_or_crlf_and_nothing_else(run: Runner, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"\xef\xbb\xbfone\rand the same\r\n\n\x00\n   \nlast without an end")
    for name, content in (("lines.txt", file.read_bytes()), ("lines.txt.gz", gzip.compress(file.read_bytes()))):
        (tmp_path / name).write_bytes(content)
        done = run("predict", model, tmp_path / name)
        assert done.code == 0, done.err
        assert len(done.out.splitlines()) == 5


def test_texts_that_are_not_utf8_are_named_by_line(run: Runner, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"fine\ncaf\xe9\n")
    done = run("predict", model, file)
    assert (done.code, done.out) == (2, "")
    assert f"line 2 of '{file}' is not UTF-8" in done.err


def test_predict_answers_before_the_input_ends(model: Path) -> None:
    """A slow pipe is answered line by line; a reader that has had enough ends it without a word."""
    command = [sys.executable, "-m", "capsroute.cli", "predict", str(model)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for text, label in ((b"a lovely day\n", b"good\n"), (b"sad\n", b"bad\n")):
            process.stdin.write(text)
            process.stdin.flush()
            assert process.stdout.readline() == label
        process.stdout.close()
        process.stdin.write(b"fine\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        process.wait(timeout=30)


def test_predict_reads_a_table_from_standard_input(model: Path) -> None:
    command = [sys.executable, "-m", "capsroute.cli", "predict", str(model), "-", "--text", "what", "--format", "csv"]
    table = '{"id": "x", "what": "lovely"}\n{"id": "y", "what": ""}\n{"id": "z", "what": "sad"}\n'
    done = subprocess.run(command, input=table, capture_output=True, text=True, check=True)
    first, _, last = done.stdout.splitlines()
    assert (first, last) == ("x,good", "z,bad")


def test_nothing_to_explain_is_said(run: Runner, model: Path) -> None:
    for text in ("", "  "):
        done = run("explain", model, text)
        assert (done.code, done.out) == (2, "")
        assert "the text has no words" in done.err


def test_places_of_results_are_refused_before_the_work(run: Runner, model: Path, data: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    for arguments, sentence in (
        (("explain", model, "sad", "--html", nowhere / "a.html"), "there is no folder"),
        (("explain", model, "sad", "--html", tmp_path), "is a folder"),
        (("explain", model, "sad", "--png", tmp_path / "a.gif"), "unknown ending"),
        (("evaluate", model, data, "--confusion", nowhere / "a.png"), "there is no folder"),
        (("evaluate", model, data, "--confusion", tmp_path / "a.txt"), "unknown ending"),
        (("evaluate", model, data, "--errors", "-1"), "errors must be at least 0"),
    ):
        done = run(*arguments)
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err


def test_model_and_data_in_the_wrong_order_are_told_apart(run: Runner, model: Path, data: Path) -> None:
    for verb in ("evaluate", "predict"):
        done = run(verb, data, model)
        assert done.code == 2
        assert f"'{model}' is the model and comes first" in done.err
    for arguments in (("evaluate", model, model), ("train", model, "-o", data.parent / "m"), ("check-data", model)):
        done = run(*arguments)
        assert done.code == 2
        assert "is a saved model, but labelled texts are wanted" in done.err


@pytest.mark.parametrize(
    "wrong",
    [
        "dim=0",
        "children=true",
        "lowercase=maybe",
        "lowercase=1",
        "min_frequency=x",
        "max_length=2.5",
        "max_length=long",
        "epochs=1.5",
        "learning_rate=fast",
        "accents=none",
        "routing.temperature=hot",
        "dropout=2",
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused_before_texts_are_read(
    run: Runner, data: Path, tmp_path: Path, wrong: str
) -> None:
    done = run("train", data, "-o", tmp_path / "m", "--set", wrong)
    assert done.code == 2
    assert "rows of csv" not in done.err
    assert len(done.err.splitlines()) == 1
    assert wrong.partition("=")[0].removeprefix("routing.") in done.err


def test_a_word_in_place_of_a_size_is_refused_by_the_program_itself(data: Path, tmp_path: Path) -> None:
    """In a process of its own: here the checker of annotations would be first to refuse it."""
    command = [
        sys.executable,
        "-m",
        "capsroute.cli",
        "train",
        str(data),
        "-o",
        str(tmp_path / "m"),
        "--set",
        "dim=abc",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "capsroute: dim must be a whole number of at least 1, but is 'abc'.\n"


@pytest.mark.parametrize("share", ["1", "1.5", "-0.1", "nan"])
def test_a_share_to_validate_on_lies_below_one(run: Runner, data: Path, tmp_path: Path, share: str) -> None:
    done = run("train", data, "-o", tmp_path / "m", f"--valid={share}")
    assert done.code == 2
    assert "valid must be a file or a share" in done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("trian",), "No such command 'trian'. Did you mean 'train'? See --help."),
        (("train", "--bogus"), "No such option: --bogus"),
        (("train",), "Missing argument"),
        (("train", "data.csv"), "Missing option '--out'"),
        (("train", "data.csv", "-o", "m", "--epochs", "few"), "Invalid value for '--epochs'"),
        (("info", "a", "b"), "unexpected extra argument"),
    ],
)
def test_a_wrong_command_gets_one_line_too(run: Runner, arguments: tuple[str, ...], sentence: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith("capsroute: ")


def test_without_a_verb_there_is_help(run: Runner) -> None:
    done = run()
    assert done.code == 0
    assert "check-data" in done.out


def test_the_shell_completes_verbs_and_options() -> None:
    def completed(words: str, place: int) -> list[str]:
        question = {"_CAPSROUTE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        code = "import sys; sys.argv = ['capsroute']; from capsroute.cli import main; main()"
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, env={**os.environ, **question}, capture_output=True, text=True, check=True
        ).stdout.split()

    assert completed("capsroute tr", 1) == ["train"]
    assert completed("capsroute train --rou", 2) == ["--routing"]


def test_labels_of_the_fixture_are_what_the_tests_say() -> None:
    assert Labels.of(toy()[1]).names == ["bad", "good"]
