"""What cannot be read gets one sentence: where, why and the way out; or it is skipped and counted."""

import gzip
import hashlib
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capsroute.text import CorpusError, read_corpus
from tests.test_text_reading import save

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
    (
        "a.csv",
        b"text,label\nok,x\n\xe9,y\nok,y\n",
        r"line 3: is not valid UTF-8 \(byte 0xe9; .* iconv -f cp1252 -t UTF-8 converts it\)",
    ),
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
        r"does not tell which column holds the text: name it with text=... \(--text\), one of 'a', 'b'",
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
    (
        "a.jsonl",
        b"text\nx\n",
        {"on_error": "skip"},
        "is no jsonl file, which has one object a line: its first line is not valid JSON",
    ),
    ("stdin-like", b'[\n{"text": "a"}\n]', {}, "is one JSON array: write it as one object a line"),
    ("a.json", b'[{"text": "a"}]', {}, "is one JSON array: write it as one object a line"),
    ("a.bin", b"\x00\x01\x02", {}, "is not a text file: it holds NUL bytes"),
    ("a.csv", "größe,text\na,b\n".encode("latin-1"), {}, "is no csv file: its first line is not valid UTF-8"),
    ("a.csv", b"text\0,label\na,b\n", {}, "is no csv file: its first line holds NUL bytes"),
    ("a.csv", b"PK\x03\x04 and more\n", {}, "is a zip archive or a spreadsheet: unpack it, or save it as csv"),
    ("a.csv.bz2", b"BZh91AY&SY and more\n", {}, "is packed with bzip2: unpack it"),
    ("a.txt", b"no label\n__label__x b\n", {}, "a.txt, line 1: has no label in 'label'"),
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


def test_names_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to("nothing.csv")
    with pytest.raises(CorpusError, match=r"link.csv' is a link that leads to no file"):
        read_corpus(tmp_path / "link.csv")
    with pytest.raises(CorpusError, match="name of the file to read is empty"):
        read_corpus("")
    with pytest.raises(CorpusError, match=r"c[.]csv' is an address: download it"):
        read_corpus("https://a.b/c.csv")


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = save(tmp_path, "a.csv", "text\na\n")

    def refuse(*_: object, **__: object) -> None:  # a user who may read everything cannot be refused by the system
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
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
