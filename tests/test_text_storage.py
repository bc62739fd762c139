"""A corpus larger than memory: it lies in a file, gives the same rows, and leaves nothing behind."""

import copy
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsroute.text import Corpus, CorpusError, Tokenizer, TokenizerConfig, growing, read_corpus, storage


def write(folder: Path, rows: int) -> Path:
    file = folder / "big.csv"
    file.write_text("label,text\n" + "".join(f"{row % 3},text number {row}\n" for row in range(rows)))
    return file


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Every table goes to a file; returns the folder of temporary files."""
    monkeypatch.setattr(storage, "IN_MEMORY", 1000)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def test_a_large_corpus_is_mapped_and_leaves_no_file(little_memory: Path) -> None:
    corpus = read_corpus(write(little_memory.parent, 20_000))
    assert corpus.table.get_total_buffer_size() > 1000
    assert list(little_memory.iterdir()) == []
    assert corpus.texts(19_998) == ["text number 19998", "text number 19999"]
    assert corpus.labels[:4] == ["0", "1", "2", "0"]
    taken = corpus.take([19_999, 0, 8_192, 0])
    assert taken.texts() == [f"text number {row}" for row in (19_999, 0, 8_192, 0)]
    assert list(little_memory.iterdir()) == []


def test_a_failed_reading_leaves_no_file(little_memory: Path) -> None:
    file = write(little_memory.parent, 20_000)
    file.write_text(file.read_text() + "one,two,three\n")
    with pytest.raises(CorpusError, match="line 20002: has 3 fields"):
        read_corpus(file)
    with pytest.raises(CorpusError, match="line 20002: has 3 fields"):
        read_corpus(file, cache=little_memory / "cache")
    assert [path.name for path in little_memory.rglob("*")] == ["cache"]


def test_cache_is_found_again_until_the_source_changes(little_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, cache = write(little_memory.parent, 20_000), little_memory / "cache"
    file.write_text(file.read_text() + "bad\n")
    first = read_corpus(file, cache=cache, on_error="skip")
    assert sorted(path.suffix for path in cache.iterdir()) == [".arrow", ".json"]

    def fail(*_: object) -> None:
        raise AssertionError("the source was read again")

    with monkeypatch.context() as patch:
        patch.setattr("capsroute.text.reading.open_reader", fail)
        again = read_corpus(file, cache=cache, on_error="skip")
    assert again.table.equals(first.table)
    assert again.describe() == first.describe()
    assert (again.bad_rows, again.files) == (first.bad_rows, first.files)

    assert len(read_corpus(file, cache=cache, on_error="skip", label="label").guessed) == 1  # read otherwise
    file.write_text(file.read_text().removesuffix("bad\n") + "0,one more\n")
    assert len(read_corpus(file, cache=cache)) == 20_001


def test_cache_without_its_facts_is_made_again(little_memory: Path) -> None:
    file, cache = write(little_memory.parent, 20_000), little_memory / "cache"
    read_corpus(file, cache=cache)
    next(cache.glob("*.json")).write_text("{")
    assert len(read_corpus(file, cache=cache)) == 20_000


def test_small_corpora_are_not_cached(tmp_path: Path) -> None:
    read_corpus(write(tmp_path, 10), cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_unwritable_cache(little_memory: Path) -> None:
    (little_memory / "taken").write_text("a file")
    with pytest.raises(CorpusError, match=r"cannot be kept in '.*taken' \(.*\): name a folder with room with cache="):
        read_corpus(write(little_memory.parent, 20_000), cache=little_memory / "taken")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_full_disk(little_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "mkstemp", lambda **_: (os.open(os.devnull, os.O_RDONLY), "/dev/full"))
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    with pytest.raises(CorpusError, match="No space left on device"):
        read_corpus(write(little_memory.parent, 20_000))


@given(st.lists(st.text(max_size=5), min_size=1, max_size=30), st.data())
def test_rows_are_taken_in_the_order_given(texts: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1)))
    corpus = Corpus.of(texts, [["x"] * (row % 3) for row in range(len(texts))])
    taken = corpus.take(rows)
    assert taken.texts() == [texts[row] for row in rows]
    assert taken.labels == [corpus.labels[row] for row in rows]


def test_rows_outside_are_refused() -> None:
    with pytest.raises(IndexError, match=r"rows must lie in \[0, 2\), but reach from -1 to 1"):
        Corpus.of(["a", "b"]).take(np.array([1, -1]))


def test_many_ids_are_mapped_and_are_the_same(little_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text number {row}" for row in range(9_000)]
    tokenizer = Tokenizer.train(texts, TokenizerConfig(min_frequency=1))
    few = tokenizer.encode(texts)
    monkeypatch.setattr(growing, "IN_MEMORY", 1000)
    many = tokenizer.encode(texts)
    assert few.ids.flags.writeable
    assert not many.ids.flags.writeable  # it lies in a file
    assert np.array_equal(many.ids, few.ids)
    assert np.array_equal(many.limited(2).ids, few.limited(2).ids)
    assert np.array_equal(many.take([5, 1]).ids, few.take([5, 1]).ids)
    assert np.array_equal(copy.deepcopy(many).ids, few.ids)
    assert list(little_memory.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_ids_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "IN_MEMORY", 10)
    full = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115  closed by what is tested
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
    with pytest.raises(CorpusError, match=r"No space left on device\): set TMPDIR to a folder with room"):
        Tokenizer(["a"]).encode(["a " * 100])


MEASURE = """
import re, sys
from pathlib import Path
from capsroute.text import read_corpus
def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before = anonymous()
corpus = read_corpus(sys.argv[1])
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
after = anonymous()
texts = sum(1 for _ in corpus)
part = corpus.take(range(0, len(corpus), 2))
print(texts, len(part), before, after, anonymous(), peak)
"""


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_memory_stays_bounded(tmp_path: Path) -> None:
    file = tmp_path / "big.csv"
    line = "0," + "some words that make a line rather long " * 20 + "\n"
    with open(file, "w") as stream:
        stream.write("label,text\n")
        stream.writelines([line] * 300_000)  # 240 MB
    output = subprocess.run(
        [sys.executable, "-c", MEASURE, str(file)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ).stdout
    texts, half, before, after, end, peak = (float(number) for number in output.split())
    assert (texts, half) == (300_000, 150_000)
    assert after - before < 150  # MB
    assert end - before < 150
    assert peak - before < 350  # the modules' own files are in it


TOKENISE = """
import re, sys
from pathlib import Path
from capsroute.text import Batches, Labels, Tokenizer, read_corpus, suggest_max_length
corpus = read_corpus(sys.argv[1])
tokenizer = Tokenizer.train(corpus)
encoded = tokenizer.encode(corpus)
encoded = encoded.limited(suggest_max_length(encoded.lengths))
targets = Labels.of(corpus).encode(corpus)
texts = sum(len(batch.rows) for batch in Batches(encoded, targets, batch_size=32).epoch(1))
print(texts, len(tokenizer), int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_650_000_texts_become_batches_in_3_gib(tmp_path: Path) -> None:
    file = tmp_path / "big.csv"
    random = np.random.default_rng(0)
    with open(file, "w") as stream:  # words, lengths and number as of the largest corpus of the paper; 300 MB
        stream.write("label,text\n")
        for _ in range(650):
            words = np.minimum(random.zipf(1.1, 118_000), 290_000).astype("U7")
            stream.writelines(f"{row % 5},w{' w'.join(words[row * 118 : row * 118 + 118])}\n" for row in range(1000))
    output = subprocess.run(
        [sys.executable, "-c", TOKENISE, str(file)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ).stdout
    texts, words, peak = (float(number) for number in output.split())
    assert texts == 650_000
    assert words > 100_000
    assert peak < 3 * 1024  # MB, and the modules and the mapped pages are in it
