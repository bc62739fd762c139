"""What is wrong with a corpus is found and told, problems and warnings apart."""

import json
from pathlib import Path

import pytest

from capsroute.text import Corpus, TokenizerConfig, check_data, read_corpus

GOOD = Corpus.of([f"text number {row} of many" for row in range(40)], ["a", "b"] * 20)


def test_a_good_corpus() -> None:
    report = check_data(GOOD)
    assert (report.problems, report.warnings) == ([], [])
    assert (report.rows, report.labels) == (40, {"a": 20, "b": 20})
    assert (report.lengths.mean, report.lengths.share_95, report.lengths.longest) == (5.0, 5, 5)
    assert report.suggested_max_length == 16
    assert json.loads(json.dumps(report.to_json()))["labels"] == {"a": 20, "b": 20}


def test_lengths_follow_the_tokenizer() -> None:
    corpus = Corpus.of(["a, b!", "c"], ["x", "y"])
    assert check_data(corpus).lengths.longest == 4
    assert check_data(corpus, config=TokenizerConfig(punctuation="drop")).lengths.longest == 2


@pytest.mark.parametrize(
    ("texts", "labels", "problem"),
    [
        (["a", "b"], None, "there are no labels"),
        (["a", "b"], ["x", "x"], "two different labels to tell apart, but all texts have 'x'"),
        (["", " "], ["x", "y"], "every text is empty"),
    ],
)
def test_problems(texts: list[str], labels: list[str] | None, problem: str) -> None:
    assert any(problem in found for found in check_data(Corpus.of(texts, labels)).problems)


def test_no_rows() -> None:
    assert check_data(GOOD.take([])).problems == ["there are no rows"]


@pytest.mark.parametrize(
    ("extra", "warning"),
    [
        ([("", "a"), ("  ", "b")], "empty texts: 2"),
        ([("twice", "a"), (" twice\n", "a")], "texts that occur again: 1"),
        ([("twice", "a"), ("twice", "b")], "texts that occur with different labels: 1"),
        ([("caf\ufffd", "a")], "texts with U+FFFD, where a character was lost: 1"),
        ([("cafÃ© and donâ€™t", "a"), ("Â£5", "b")], "texts that look decoded in the wrong encoding (Ã©, â€™): 2"),
        ([("a\0b", "a")], "texts with NUL characters: 1"),
        ([("x", "rare")], "labels of fewer than 10 texts: 'rare' 1"),
        ([("x", "A "), ("y", "A ")], "labels that differ in case or white space alone: 'a', 'A '"),
    ],
)
def test_warnings(extra: list[tuple[str, str]], warning: str) -> None:
    texts, labels = GOOD.texts() + [text for text, _ in extra], [*GOOD.labels, *(label for _, label in extra)]
    report = check_data(Corpus.of(texts, labels))  # type: ignore[arg-type]
    assert warning in report.warnings
    assert report.problems == []


@pytest.mark.parametrize("text", ["Ärger über naïve Café-Gäste – „schön“", "À la carte", "50 Â", "É", "ÃO PAULO"])
def test_good_text_is_not_called_broken(text: str) -> None:
    assert check_data(Corpus.of([*GOOD.texts(), text], [*GOOD.labels, "a"])).mojibake == 0  # type: ignore[list-item]


def test_train_and_test() -> None:
    test = Corpus.of(["text number 3 of  many", "new", "new too"], ["a", "b", "c"])
    report = check_data(GOOD, test)
    assert (report.test_rows, report.in_both) == (3, 1)
    assert report.problems == ["the test part has the label 'c' (1 times), which the training part has not"]
    assert report.warnings == ["texts of the test part that are in the training part too: 1"]
    assert check_data(GOOD, Corpus.of(["x"])).problems == ["the test part has no labels"]
    several = check_data(GOOD, Corpus.of(["x"], [["a"]]))
    assert several.problems == ["one of the two parts has one label a text, the other lists of labels"]


def test_rows_that_cannot_be_used_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"text,label\n" + b"a,x\nb,y\n" * 10 + b"caf\xe9,x\n" * 12)
    corpus = read_corpus(file, on_error="skip")
    (problem,) = check_data(corpus).problems
    assert problem.startswith(f"rows that cannot be used: 12 ({file}, line 22: is not valid UTF-8")
    assert problem.count("line ") == 10
    assert problem.endswith("; ...)")
    assert len(check_data(GOOD, corpus).problems) == 3  # and two labels that GOOD has not
    report = check_data(corpus)
    assert (report.text_column, report.label_column, report.guessed) == ("text", "label", ("text", "label"))


def test_several_labels_are_counted_one_by_one() -> None:
    corpus = Corpus.of(["x", "y", "x"], [["a", "b"], [], ["b", "a"]])
    report = check_data(corpus)
    assert report.labels == {"a": 2, "b": 2}
    assert (report.duplicates, report.conflicts) == (1, 0)
