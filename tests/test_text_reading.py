"""What was written is what is read, in every format and compression, from columns guessed or given."""

import csv
import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capsroute.text import Corpus, CorpusError, read_corpus

Rows = list[tuple[str, str]]
NUL = "" if sys.version_info >= (3, 11) else "\0"  # the csv module of Python 3.10 refuses it
ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=NUL), max_size=30)
WORDS = ANY.map(lambda text: " ".join(text.split()))
LABEL = WORDS.map(lambda text: text.replace(" ", "")).filter(lambda text: text and "__label__" not in text)


def write_csv(file: Path, rows: Rows, newline: str) -> None:
    with open(file, "w", newline="", encoding="utf-8") as stream:
        quoting = csv.QUOTE_MINIMAL if newline == "\r\n" else csv.QUOTE_ALL  # else a lone CR or LF gets no quotes
        csv.writer(stream, lineterminator=newline, quoting=quoting).writerows([("text", "label"), *rows])


def write_tsv(file: Path, rows: Rows, newline: str) -> None:
    quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' if '"' in cell else cell for cell in row] for row in rows]
    lines = ["\t".join(row) for row in [["label", "text"], *([label, text] for text, label in quoted)]]
    file.write_bytes(newline.join(lines).encode())


def write_jsonl(file: Path, rows: Rows, newline: str) -> None:
    lines = [
        json.dumps({"text": text, "label": label}, ensure_ascii=bool(number % 2))
        for number, (text, label) in enumerate(rows)
    ]
    file.write_bytes(newline.join(lines).encode())


def write_fasttext(file: Path, rows: Rows, newline: str) -> None:
    file.write_bytes("".join(f"__label__{label} {text}{newline}" for text, label in rows).encode())


def table(rows: Rows) -> pa.Table:
    return pa.table({"text": [text for text, _ in rows], "label": [label for _, label in rows]})


def write_parquet(file: Path, rows: Rows, _: str = "") -> None:
    pq.write_table(table(rows), file)


def write_arrow_stream(file: Path, rows: Rows, _: str = "") -> None:
    with pa.ipc.new_stream(file, table(rows).schema) as stream:
        stream.write_table(table(rows), max_chunksize=3)


def write_arrow_file(file: Path, rows: Rows, _: str = "") -> None:
    with pa.ipc.new_file(file, table(rows).schema) as stream:
        stream.write_table(table(rows), max_chunksize=3)


WRITERS: dict[str, tuple[str, Callable[[Path, Rows, str], None], st.SearchStrategy[str]]] = {
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
        write(file, rows, data.draw(st.sampled_from(["\n", "\r\n", "\r"])))
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
