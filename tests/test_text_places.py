"""Files, folders, stdin, data sets saved and living, the Hub: every place that texts are read from."""

import io
import json
import os
import sys
import types
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capsroute.text import CorpusError, ReadOptions, read_corpus, stream_corpus
from tests.test_text_reading import WRITERS, pack, save, write_arrow_stream, write_parquet


def test_folder_of_files(tmp_path: Path) -> None:
    save(tmp_path, "part-1.csv", "text,label\na,x\n")
    pack(save(tmp_path, "part-2.csv", "label,text\ny,b\n"), ".gz")
    (tmp_path / "part-2.csv").unlink()
    save(tmp_path, "README.md", "not data")
    corpus = read_corpus(tmp_path)
    assert (corpus.texts(), corpus.labels) == (["a", "b"], ["x", "y"])
    assert [Path(file).name for file in corpus.files] == ["part-1.csv", "part-2.csv.gz"]


def test_unknown_ending_is_told_by_the_first_lines(tmp_path: Path) -> None:
    assert read_corpus(save(tmp_path, "a.data", '{"text": "x", "label": 1}\n')).format == "jsonl"
    assert read_corpus(save(tmp_path, "b.data", "label;text\n1;x\n")).format == "csv"
    assert read_corpus(save(tmp_path, "c.data", "text\tlabel\nx\ty\n")).format == "tsv"
    assert read_corpus(save(tmp_path, "d.data", "__label__a x\n")).format == "fasttext"
    assert read_corpus(save(tmp_path, "e.data", "Dear me, what is this?\n")).format == "lines"
    assert read_corpus(save(tmp_path, "e2.data", "Review, in short: I like it, overall\n")).format == "lines"
    assert read_corpus(save(tmp_path, "e3.data", "[Chorus] la la\n")).format == "lines"
    assert read_corpus(save(tmp_path, "f.data", "text\nx\n")).format == "csv"
    assert read_corpus(save(tmp_path, "g.data", '"1","a title","some words"\n"2","b","c"\n')).format == "csv"
    file = tmp_path / "h.data"
    write_parquet(file, [("x", "y")])
    assert read_corpus(file).format == "parquet"
    file = tmp_path / "i.data"
    write_arrow_stream(file, [("x", "y")])
    assert read_corpus(file).format == "arrow"


ROWS = [("good words", "x"), ("", "y"), ("das Gute 漢字 😀", "x")]


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", WRITERS)
def test_folders_and_stdin_of_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, packing: str
) -> None:
    ending, write, _ = WRITERS[kind]
    for part in ("a", "b"):
        file = tmp_path / f"{part}{ending}"
        write(file, ROWS, "\n")
        packed = pack(file, packing)
        if packed != file:
            file.unlink()
    corpus = read_corpus(tmp_path)
    assert list(zip(corpus.texts(), corpus.labels, strict=True)) == ROWS * 2
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(packed.read_bytes())))
    corpus = read_corpus("-")
    assert list(zip(corpus.texts(), corpus.labels, strict=True)) == ROWS


@pytest.mark.parametrize("packing", ["", ".gz"])
def test_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: str) -> None:
    content = pack(save(tmp_path, "a.csv", "text,label\n" + "good,x\n" * 20_000), packing).read_bytes()
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))
    corpus = read_corpus("-")
    assert (len(corpus), corpus.format, corpus.file) == (20_000, "csv", "stdin")


def test_stdin_that_is_written_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = [b'{"te', b'xt": "a"}\n{"text"', b': "b"}\n']
    reader, writer = os.pipe()
    with open(reader, "rb") as pipe:
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=pipe))
        for chunk in chunks:
            os.write(writer, chunk)
        os.close(writer)
        assert read_corpus("-").texts() == ["a", "b"]


def test_stream_gives_parts(tmp_path: Path) -> None:
    file = save(tmp_path, "a.txt", "".join(f"line {number}\n" for number in range(20_000)))
    parts = list(stream_corpus(file, ReadOptions(labels="unread")))
    assert len(parts) == 3
    assert [text for part in parts for text in part] == [f"line {number}" for number in range(20_000)]


class FakeDataset:
    """What is used of `datasets.Dataset`; rows can be selected without the table being touched, as there."""

    def __init__(self, columns: dict[str, list[object]], rows: list[int], features: dict[str, object]) -> None:
        self._columns, self._rows, self.features = columns, rows, features
        self.format_type: str | None = None

    @property
    def column_names(self) -> list[str]:
        return list(self._columns)

    @property
    def format(self) -> dict[str, object]:
        return {"type": self.format_type}

    def with_format(self, type: str) -> "FakeDataset":
        assert type == "arrow"
        return self

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: slice) -> pa.Table:
        return pa.table({name: [cells[row] for row in self._rows[key]] for name, cells in self._columns.items()})


def test_dataset_object() -> None:
    features = {"text": object(), "label": types.SimpleNamespace(names=["neg", "pos"])}
    dataset = FakeDataset({"text": ["a", "b", "c"], "label": [0, 1, 1]}, [2, 0], features)
    corpus = read_corpus(dataset)
    assert (corpus.texts(), corpus.labels) == (["c", "a"], ["pos", "neg"])
    with pytest.raises(CorpusError, match=r"several parts: choose one with \['train'\], \['test'\]"):
        read_corpus({"train": dataset, "test": dataset})  # pyright: ignore[reportArgumentType]
    assert read_corpus({"train": dataset}).texts() == ["c", "a"]  # pyright: ignore[reportArgumentType]
    dataset.format_type = "custom"  # after set_transform
    with pytest.raises(CorpusError, match="has a transform, which a corpus would not see: map"):
        read_corpus(dataset)


def test_class_numbers_without_a_name() -> None:
    features = {"label": types.SimpleNamespace(names=["neg", "pos"])}
    dataset = FakeDataset({"text": ["a", "b"], "label": [0, -1]}, [0, 1], features)
    with pytest.raises(CorpusError, match="dataset, row 2: has no label"):
        read_corpus(dataset)
    dataset = FakeDataset({"text": ["a", "b"], "label": [0, 2]}, [0, 1], features)
    with pytest.raises(CorpusError, match="row 2: the label number 2 has no name, there are 2 names"):
        read_corpus(dataset)


def save_dataset(folder: Path) -> None:
    """As `Dataset.save_to_disk` leaves it."""
    folder.mkdir(parents=True)
    for number, (text, label) in enumerate([("a", 1), ("b", 0)]):
        data = pa.table({"text": [text], "label": [label]})
        with pa.ipc.new_stream(folder / f"data-0000{number}-of-00002.arrow", data.schema) as stream:
            stream.write_table(data)
    names = [{"filename": f"data-0000{number}-of-00002.arrow"} for number in (1, 0)]
    features = {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": ["n", "p"], "_type": "ClassLabel"}}
    save(folder, "state.json", json.dumps({"_data_files": names}))
    save(folder, "dataset_info.json", json.dumps({"features": features}))


def test_saved_dataset(tmp_path: Path) -> None:
    save_dataset(tmp_path / "set" / "train")
    corpus = read_corpus(tmp_path / "set" / "train")
    assert (corpus.texts(), corpus.labels) == (["b", "a"], ["n", "p"])
    save(tmp_path / "set", "dataset_dict.json", '{"splits": ["train", "test"]}')
    with pytest.raises(CorpusError, match=r"holds several data sets: name one of '.*train', '.*test'"):
        read_corpus(tmp_path / "set")
    (tmp_path / "set" / "train" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(CorpusError, match=r"incomplete: .*data-00001-of-00002.arrow.* missing"):
        read_corpus(tmp_path / "set" / "train")
    save(tmp_path / "set" / "train", "state.json", '{"_data_files": []}')
    with pytest.raises(CorpusError, match="is empty: it has no rows"):
        read_corpus(tmp_path / "set" / "train")


def test_bytes_that_are_text_in_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["é".encode(), None], "label": [b"x", b"y"]}), tmp_path / "a.parquet")
    corpus = read_corpus(tmp_path / "a.parquet")
    assert (corpus.texts(), corpus.labels) == (["é", ""], ["x", "y"])


def test_class_names_in_the_metadata_of_parquet(tmp_path: Path) -> None:
    info = {"info": {"features": {"label": {"feature": {"names": ["n", "p"]}, "_type": "Sequence"}}}}
    data = pa.table({"text": ["a", "b"], "label": [[1], [0, 1]]})
    pq.write_table(data.replace_schema_metadata({"huggingface": json.dumps(info)}), tmp_path / "a.parquet")
    assert read_corpus(tmp_path / "a.parquet").labels == [["p"], ["n", "p"]]


def test_hub_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capsroute.text.reading.find_spec", lambda _: None)
    with pytest.raises(CorpusError, match="'hf:a/b' needs the package 'datasets': pip install datasets"):
        read_corpus("hf:a/b")


def test_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def load_dataset(name: str, split: str) -> FakeDataset:
        asked.append((name, split))
        if name == "a/none":
            raise ConnectionError("no network\nsecond line")
        return FakeDataset({"text": ["x"], "label": ["y"]}, [0], {})

    monkeypatch.setattr("capsroute.text.reading.find_spec", lambda _: True)
    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    assert read_corpus("hf:a/b").texts() == ["x"]
    assert read_corpus("hf:a/b:test").labels == ["y"]
    assert asked == [("a/b", "train"), ("a/b", "test")]
    for name in ("hf:", "hf:a/b:"):
        with pytest.raises(CorpusError, match=f"'{name}' is not of the form hf:owner/name"):
            read_corpus(name)
    with pytest.raises(CorpusError, match=r"'hf:a/none' could not be loaded by 'datasets' \(no network\)"):
        read_corpus("hf:a/none")
