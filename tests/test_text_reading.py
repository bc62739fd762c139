"""What was written is what is read, in every format and compression; and what cannot be read gets one sentence."""

import csv
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capsroute.text import Corpus, CorpusError, ReadOptions, read_corpus, stream_corpus

Rows = list[tuple[str, str]]
NUL = "" if sys.version_info >= (3, 11) else "\0"  # the csv module of Python 3.10 refuses it
ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=NUL), max_size=30)
WORDS = ANY.map(lambda text: " ".join(text.split()))
LABEL = WORDS.map(lambda text: text.replace(" ", "")).filter(lambda text: text and "__label__" not in text)


def write_csv(file: Path, rows: Rows) -> None:
    with open(file, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("text", "label"), *rows])


def write_tsv(file: Path, rows: Rows) -> None:
    quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' if '"' in cell else cell for cell in row] for row in rows]
    lines = ["\t".join(row) for row in [["label", "text"], *([label, text] for text, label in quoted)]]
    file.write_bytes("\n".join(lines).encode())


def write_jsonl(file: Path, rows: Rows) -> None:
    lines = [
        json.dumps({"text": text, "label": label}, ensure_ascii=bool(number % 2))
        for number, (text, label) in enumerate(rows)
    ]
    file.write_bytes("\r\n".join(lines).encode())


def write_fasttext(file: Path, rows: Rows) -> None:
    file.write_bytes("".join(f"__label__{label} {text}\n" for text, label in rows).encode())


def table(rows: Rows) -> pa.Table:
    return pa.table({"text": [text for text, _ in rows], "label": [label for _, label in rows]})


def write_parquet(file: Path, rows: Rows) -> None:
    pq.write_table(table(rows), file)


def write_arrow_stream(file: Path, rows: Rows) -> None:
    with pa.ipc.new_stream(file, table(rows).schema) as stream:
        stream.write_table(table(rows), max_chunksize=3)


def write_arrow_file(file: Path, rows: Rows) -> None:
    with pa.ipc.new_file(file, table(rows).schema) as stream:
        stream.write_table(table(rows), max_chunksize=3)


WRITERS: dict[str, tuple[str, Callable[[Path, Rows], None], st.SearchStrategy[str]]] = {
    "csv": (".csv", write_csv, ANY),
    "tsv": (".tsv", write_tsv, WORDS),
    "jsonl": (".jsonl", write_jsonl, ANY),
    "fasttext": (".ft", write_fasttext, WORDS.filter(lambda text: "__label__" not in text)),
    "parquet": (".parquet", write_parquet, ANY),
    "arrow stream": (".arrow", write_arrow_stream, ANY),
    "arrow file": (".arrow", write_arrow_file, ANY),
}


def pack(file: Path, packing: str) -> Path:
    packed = file.with_name(file.name + packing)
    if packing == ".gz":
        half = file.stat().st_size // 2  # two members behind each other are one file
        content = file.read_bytes()
        packed.write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]))
    elif packing == ".zst":
        with pa.output_stream(str(packed), compression="zstd") as stream:
            stream.write(file.read_bytes())
    return packed


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", WRITERS)
@given(data=st.data())
@settings(max_examples=25)
def test_what_was_written_is_read(kind: str, packing: str, data: st.DataObject) -> None:
    ending, write, texts = WRITERS[kind]
    rows = data.draw(st.lists(st.tuples(texts, LABEL), min_size=1, max_size=12))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"data{ending}"
        write(file, rows)
        corpus = read_corpus(pack(file, packing))
    assert corpus.texts() == [text for text, _ in rows]
    assert corpus.labels == [label for _, label in rows]
    assert (corpus.text_column, corpus.label_column, corpus.guessed) == ("text", "label", ("text", "label"))
    assert corpus.empty == sum(not text.strip() for text, _ in rows)
    assert corpus.skipped == 0


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")), min_size=1))
def test_plain_lines_keep_their_number(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.txt"
        file.write_bytes("".join(f"{line}\n" for line in lines).encode())
        corpus = read_corpus(file, format="lines")
    assert corpus.texts() == lines
    assert not corpus.has_labels


def save(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


# -- columns


@pytest.mark.parametrize(
    ("header", "text", "label"),
    [
        ("tweet_id,sentiment,author,content", "content", "sentiment"),
        ("reviewerID,reviewText,overall,summary", "reviewText", "overall"),
        (",Clothing ID,Title,Review Text,Rating,Class Name", "Review Text", "Rating"),
        ("business_id,stars,text,type", "text", "stars"),
        ("Class Index,Title,Description", "Title+Description", "Class Index"),
        ("titel,TEXT,Label", "TEXT", "Label"),
        ("label,etwas", "etwas", "label"),
        ("sentence", "sentence", None),
    ],
)
def test_columns_are_guessed(tmp_path: Path, header: str, text: str, label: str | None) -> None:
    cells = ",".join(f"x{number}" for number, _ in enumerate(header.split(",")))
    corpus = read_corpus(save(tmp_path, "a.csv", f"{header}\n{cells}\n"))
    assert (corpus.text_column, corpus.label_column) == (text, label)
    columns = header.split(",")
    assert corpus.texts() == [" ".join(f"x{columns.index(name)}" for name in text.split("+"))]


def test_given_columns_win(tmp_path: Path) -> None:
    file = save(tmp_path, "a.csv", "id,text,body,label,group\n7,a,b,c,d\n")
    corpus = read_corpus(file, text="body+text", label="group")
    assert (corpus.texts(), corpus.labels, corpus.column("id"), corpus.guessed) == (["b a"], ["d"], ["7"], ())
    assert read_corpus(file, text=["text", "body"]).texts() == ["a b"]
    assert read_corpus(file, keep=["group"]).column("group") == ["d"]
    assert "text from 'text' (guessed), label from 'group'" in read_corpus(file, label="group").describe()


def test_headerless_csv_of_class_title_description(tmp_path: Path) -> None:
    file = save(tmp_path, "train.csv", '"3","Oil, up","It ""rose""."\n"1","","Next."\n')
    corpus = read_corpus(file)
    assert corpus.texts() == ['Oil, up It "rose".', "Next."]
    assert (corpus.labels, corpus.text_column, corpus.label_column) == (["3", "1"], "2+3", "1")
    assert read_corpus(file, text="3").texts() == ['It "rose".', "Next."]


def test_headerless_csv_with_a_bad_row_or_a_title_that_is_a_column_s_name(tmp_path: Path) -> None:
    corpus = read_corpus(save(tmp_path, "a.csv", "3,Review,words\n1,two\n2,more,words\n"), on_error="skip")
    assert (corpus.texts(), corpus.labels) == (["Review words", "more words"], ["3", "2"])
    assert str(corpus.bad_rows[0]).endswith("line 2: has 2 fields where 3 are expected")
    assert read_corpus(save(tmp_path, "b.csv", "0,text,label\n1,a,x\n")).labels == ["x"]


def test_columns_by_number_say_that_there_is_no_header(tmp_path: Path) -> None:
    corpus = read_corpus(save(tmp_path, "a.csv", "I feel fine,joy\nI feel ill,grief\n"), text="1", label="2")
    assert (corpus.texts(), corpus.labels) == (["I feel fine", "I feel ill"], ["joy", "grief"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_seen_in_the_header(tmp_path: Path, delimiter: str) -> None:
    file = save(tmp_path, "a.csv", f'label{delimiter}text\nx{delimiter}"a{delimiter}b"\n')
    assert read_corpus(file).texts() == [f"a{delimiter}b"]


def test_bom_crlf_line_breaks_in_quotes_and_an_unnamed_column(tmp_path: Path) -> None:
    content = '\ufeff,text,label\r\n0,"one\r\ntwo, ""three""",x\r\n\r\n1,plain,y\r\n'
    corpus = read_corpus(save(tmp_path, "a.csv", content))
    assert corpus.texts() == ['one\r\ntwo, "three"', "plain"]
    assert corpus.column("id") == ["0", "1"]


def test_tsv_keeps_stray_quotes(tmp_path: Path) -> None:
    corpus = read_corpus(save(tmp_path, "a.tsv", 'label\ttext\nx\t"Good", she said\ny\t"all ""in"" quotes"\n'))
    assert corpus.texts() == ['"Good", she said', 'all "in" quotes']


# -- labels


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([5.0, 5, "5"], ["5", "5", "5"]),
        ([4.5, -1, 1e20], ["4.5", "-1", "100000000000000000000"]),
        ([True, False], ["true", "false"]),
        ([["a", "b"], ["c"], []], [["a", "b"], ["c"], []]),
        ([["a"], "b", [1.0, "1"]], [["a"], ["b"], ["1"]]),
    ],
)
def test_labels_become_strings(tmp_path: Path, values: list[object], labels: list[object]) -> None:
    lines = [json.dumps({"text": "x", "label": value}) for value in values]
    corpus = read_corpus(save(tmp_path, "a.jsonl", "\n".join(lines)))
    assert corpus.labels == labels
    assert corpus.several_labels == isinstance(labels[0], list)


def test_several_fasttext_labels(tmp_path: Path) -> None:
    corpus = read_corpus(save(tmp_path, "a.txt", "__label__a __label__b two words\nlast __label__c\n"))
    assert (corpus.format, corpus.labels, corpus.texts()) == ("fasttext", [["a", "b"], ["c"]], ["two words", "last "])


def test_labels_left_alone(tmp_path: Path) -> None:
    file = save(tmp_path, "a.jsonl", '{"text": "x", "label": null}\n{"text": "y"}\n')
    corpus = read_corpus(file, labels="unread")
    assert (corpus.texts(), corpus.has_labels) == (["x", "y"], False)
    with pytest.raises(CorpusError, match="no label column: name it with label="):
        _ = corpus.labels


def test_null_and_missing_texts_are_empty_texts(tmp_path: Path) -> None:
    file = save(tmp_path, "a.jsonl", '{"text": null, "label": "a"}\n{"label": "b"}\n{"text": 3, "label": "c"}\n')
    corpus = read_corpus(file)
    assert (corpus.texts(), corpus.empty) == (["", "", "3"], 2)


# -- sources


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
    assert read_corpus(save(tmp_path, "f.data", "text\nx\n")).format == "csv"
    assert read_corpus(save(tmp_path, "g.data", '"1","a title","some words"\n"2","b","c"\n')).format == "csv"
    file = tmp_path / "h.data"
    write_parquet(file, [("x", "y")])
    assert read_corpus(file).format == "parquet"
    file = tmp_path / "i.data"
    write_arrow_stream(file, [("x", "y")])
    assert read_corpus(file).format == "arrow"


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

    @property
    def column_names(self) -> list[str]:
        return list(self._columns)

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
    with pytest.raises(CorpusError, match=r"'hf:a/none' could not be loaded by 'datasets' \(no network\)"):
        read_corpus("hf:a/none")


# -- bad rows

BAD_ROWS = [
    ("a.csv", b"text,label\nok,x\none\nok,y\n", "line 3: has 1 fields where 2 are expected"),
    ("a.csv", b'text,label\nok,x\n"a\nb",y,z\nok,y\n', "line 3: has 3 fields where 2 are expected"),
    ("a.csv", b'text,label\nok,x\n"a"b,y\nok,y\n', "line 3: has a quote inside a quoted field that is not doubled"),
    (
        "a.csv",
        b'text,label\nok,x\nok,y\n"open,z\nmore,z\n',
        "line 4: opens a quote that is never closed, up to line 5",
    ),
    ("a.csv", b"text,label\nok,x\n\xe9,y\nok,y\n", r"line 3: is not valid UTF-8 \(byte 0xe9; .* cp1252\)"),
    ("a.csv", b"text,label\nok,x\nbad,\nok,y\n", "line 3: has no label in 'label'"),
    ("a.csv", b"text,label\nok,x\nbad,  \nok,y\n", "line 3: has no label in 'label'"),
    ("a.csv", b"text,label\nok,x\nok,y\nbad,\xff\n", "line 4: is not valid UTF-8"),
    ("a.tsv", b"text\tlabel\nok\tx\nbad\nok\ty\n", "line 3: has 1 fields where 2 are expected"),
    ("a.tsv", b"text\tlabel\nok\tx\n\xff\tz\nok\ty\n", "line 3: is not valid UTF-8"),
    ("a.ft", b"__label__x ok\nno label\n__label__y ok\n", "line 2: has no label in 'label'"),
    ("a.ft", b"__label__x ok\n__label__ bad\n__label__y ok\n", "line 2: has no label in 'label'"),
]
OK = b'{"text": "ok", "label": "x"}\n'
BAD_LINES = [
    (b"{nonsense}", r"is not valid JSON \(Expecting property name .* at character 2\)"),
    (b'{"text": "cut', r"is not valid JSON \(Unterminated string"),
    (b'["a"]', "is a JSON list, not an object"),
    (b"3", "is a JSON int, not an object"),
    (b"[" * 100_000, "is not (usable|valid) JSON"),
    (b'{"text": ' + b"9" * 5000 + b"}", "is not usable JSON"),
    (b'{"text": "bad"}', "has no label in 'label'"),
    (b'{"text": "bad", "label": null}', "has no label in 'label'"),
    (b'{"text": ["bad"], "label": "x"}', "the text is a list, not a string"),
    (b'{"text": "bad", "label": {"a": 1}}', "the label is a dict, not a string, a number or a list"),
    (b'{"text": "bad", "label": ["a", null]}', "the list of labels holds an empty one"),
    (rb'{"text": "\ud83d", "label": "x"}', r"holds half of a surrogate pair \(\\ud83d\)"),
    (b'{"text": "\xff", "label": "x"}', "is not valid UTF-8"),
]
BAD_ROWS += [("a.jsonl", OK + bad + b"\n" + OK, f"line 2: {reason}") for bad, reason in BAD_LINES]


@pytest.mark.parametrize(("name", "content", "reason"), BAD_ROWS)
def test_bad_row_fails_or_is_skipped_and_counted(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    file = save(tmp_path, name, content)
    with pytest.raises(
        CorpusError, match=f"^{re.escape(str(file))}, {reason}.*leave such rows out with on_error='skip'"
    ):
        read_corpus(file)
    corpus = read_corpus(file, on_error="skip")
    assert corpus.texts() == ["ok", "ok"]
    assert corpus.skipped == len(corpus.bad_rows) == 1
    assert re.match(f".*, {reason}", str(corpus.bad_rows[0]))
    assert "1 rows skipped, the first: " in corpus.describe()


def test_bad_row_in_the_middle_of_thousands(tmp_path: Path) -> None:
    lines = [b"text,label"] + [b'"two\nlines",x'] * 10_000
    lines[9_000] = b'"two\nl\xffnes",x'
    with pytest.raises(CorpusError, match=f"line {2 + 2 * 8_999}: is not valid UTF-8"):
        read_corpus(save(tmp_path, "a.csv", b"\n".join(lines)))


def test_only_the_first_ten_bad_rows_are_kept(tmp_path: Path) -> None:
    corpus = read_corpus(save(tmp_path, "a.csv", "text,label\nok,x\n" + "bad\n" * 50), on_error="skip")
    assert (corpus.skipped, [row.line for row in corpus.bad_rows]) == (50, list(range(3, 13)))


def test_bad_row_of_a_table_is_told_by_its_number(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["ok", "bad"], "label": ["x", None]}), tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match=r"a.parquet, row 2: has no label"):
        read_corpus(tmp_path / "a.parquet")


def test_text_that_is_no_utf8_in_a_table(tmp_path: Path) -> None:
    broken = pa.array([b"ok", b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"text": broken, "label": ["x", "y"]}), tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match=r"row 2: the text is not valid UTF-8"):
        read_corpus(tmp_path / "a.parquet")


# -- bad files

NOISE = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(256)).hex().encode()

BAD_FILES = [
    ("empty.csv", b"", {}, r"'.*empty.csv' is empty"),
    ("header.csv", b"text,label\n", {}, r"is empty: it has no rows"),
    ("blank.csv", b"\n\n", {}, r"is empty: it has no rows"),
    ("blank.txt", b"", {}, r"is empty"),
    (
        "all.csv",
        b"text,label\na\nb\n",
        {"on_error": "skip"},
        "no usable row: 2 were skipped, the first: .*line 2: has 1",
    ),
    (
        "a.csv",
        b"text,label\na,b\n",
        {"text": "txt"},
        "no column 'txt' for the text; did you mean 'text'. It has: 'text'",
    ),
    ("a.csv", b"text,label\na,b\n", {"label": "zzzzz"}, "no column 'zzzzz' for the label. It has: 'text', 'label'"),
    ("a.csv", b"text,label\na,b\n", {"label": "text"}, "does not tell which column holds the text"),
    ("a.csv", b"text,label\na,b\n", {"text": "label", "label": "label"}, "both read from the column 'label'"),
    ("a.csv", b"text,text\na,b\n", {"text": "text"}, "2 columns called 'text': rename all but one"),
    (
        "a.csv",
        b"a,b,c\n1,x,y\n",
        {},
        "does not tell which column holds the text: name it with text=..., one of 'a', 'b'",
    ),
    (
        "a.csv",
        b"text,other\na,b\n",
        {"labels": "needed"},
        "does not tell which column holds the label: name it with label",
    ),
    ("a.csv", b"text,label\na,b\n", {"keep": ["labl"]}, "no column 'labl' for it; did you mean 'label'"),
    ("a.csv", b"text,label\na,b\n", {"keep": ["text"]}, "keep names 'text', which a corpus has of its own"),
    ("a.csv", b"text,label\na,b\n", {"label": "label", "labels": "unread"}, "leaves labels alone"),
    ("a.csv", b"text,label\na,b\n", {"text": []}, "text must name at least one column"),
    ("a.csv", b"text,label\na,b\n", {"on_error": "ignore"}, "unknown on_error 'ignore'"),
    ("a.csv", b"text,label\na,b\n", {"labels": "maybe"}, "unknown labels 'maybe'"),
    ("a.csv", b"text,label\na,b\n", {"format": "xls"}, "unknown format 'xls'"),
    ("a.csv", b'"a"b,c\n', {}, "is no csv file: its first line has a quote inside"),
    ("a.csv", "text,label\na,b\n".encode("utf-16"), {}, "is in the encoding UTF-16: save it as UTF-8"),
    ("a.jsonl", b"\n\n", {}, "is empty: it has no rows"),
    ("a.jsonl", b"text\nx\n", {"on_error": "skip"}, "is no jsonl file: its first line is not valid JSON"),
    ("a.json", b'[{"text": "a"}]', {}, "is one JSON array: write it as one object a line"),
    ("a.bin", b"\x00\x01\x02", {}, "is not a text file: it holds NUL bytes"),
    ("a.parquet", b"PAR1 nonsense", {}, "is no complete parquet file"),
    ("a.arrow", b"nonsense", {}, "is no Arrow file"),
    (
        "a.csv.gz",
        gzip.compress(b"text,label\n" + NOISE + b",b\n", mtime=0)[:-100],
        {},
        "damaged or cut",
    ),
    ("a.jsonl.gz", gzip.compress(OK * 5, mtime=0)[:-4], {}, "damaged or cut short"),
]


@pytest.mark.parametrize(("name", "content", "options", "reason"), BAD_FILES)
def test_bad_file(tmp_path: Path, name: str, content: bytes, options: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        read_corpus(save(tmp_path, name, content), **options)  # pyright: ignore[reportArgumentType]
    assert "\n" not in str(caught.value)


def test_missing_file_suggests_the_nearest(tmp_path: Path) -> None:
    save(tmp_path, "train.csv", "text\na\n")
    with pytest.raises(CorpusError, match=r"there is no file '.*trian.csv'; did you mean 'train.csv'\?"):
        read_corpus(tmp_path / "trian.csv")
    with pytest.raises(CorpusError, match=r"the folder '.*nowhere' does not exist"):
        read_corpus(tmp_path / "nowhere" / "train.csv")


def test_unreadable_file(tmp_path: Path) -> None:
    file = save(tmp_path, "a.csv", "text\na\n")
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(CorpusError, match="cannot be opened: Permission denied"):
        read_corpus(file)


def test_bad_folders(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds no data file: expected are files ending in \.csv"):
        read_corpus(tmp_path)
    save(tmp_path, "test.csv", "text,label\na,b\n")
    save(tmp_path, "train.csv", "text,label\na,b\n")
    with pytest.raises(
        CorpusError, match=r"parts for training and testing \('train.csv', 'test.csv'\): name one file"
    ):
        read_corpus(tmp_path)
    save(tmp_path, "test.jsonl", '{"text": "a"}')
    with pytest.raises(CorpusError, match="mixes the formats csv, jsonl: name one file"):
        read_corpus(tmp_path)


def test_files_of_a_folder_need_the_same_columns(tmp_path: Path) -> None:
    save(tmp_path, "a.csv", "text,label\na,b\n")
    save(tmp_path, "b.csv", "text,lable\na,b\n")
    with pytest.raises(CorpusError, match=r"b.csv' has no column 'label' for it; did you mean 'lable'"):
        read_corpus(tmp_path)


# -- corpus


def test_corpus_of_lists() -> None:
    corpus = Corpus.of(["a", "b", " "], [["x"], [], ["x", "y"]], ids=["1", "2", "3"])
    assert (len(corpus), corpus.empty, corpus.several_labels) == (3, 1, True)
    assert corpus.column("id") == ["1", "2", "3"]
    assert corpus.texts(1, 2) == ["b"]
    assert corpus.relabel({"x": "z"}).labels == [["z"], [], ["z", "y"]]
    assert corpus.only_labels({"y"}).labels == [[], [], ["y"]]
    with pytest.raises(CorpusError, match="lists of one length are needed, but here are 1 and 2"):
        Corpus.of(["a"], ["x", "y"])
    with pytest.raises(CorpusError, match="there are no texts"):
        Corpus.of([])
    with pytest.raises(CorpusError, match="has no column 'day': name it in keep="):
        corpus.column("day")
    with pytest.raises(CorpusError, match="one label a text: no label can be taken off"):
        Corpus.of(["a"], ["x"]).only_labels({"x"})
    with pytest.raises(CorpusError, match="the lists given, item 2: has no label"):
        Corpus.of(["a", "b"], ["x", ""])
