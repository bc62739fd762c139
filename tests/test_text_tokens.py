"""Every token knows its characters, the fast way gives what the plain one gives, a vocabulary survives its file."""

import copy
import json
import pickle
import tempfile
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from capsroute.text import Corpus, Tokenizer, TokenizerConfig, TokenizerError, pieces

MIXED = (
    "abcXYZ09 _-.,'’!?$+<>\t\n\r\0\x1c\x85\xa0 éÉßİıſ\u0301\u0308\u0323漢字かなカガー\u3099\U00020000"
    "שָׁלוֹםمرحباमनस्ते한국\u1112\u1161\u11ab😀👍🏽\u200d❤\ufe0f🇩🇪\ufeff\u200b\u200c\u2028ﬁΣςǅ\ud800"
)
TEXTS = st.text(st.sampled_from(MIXED), max_size=40) | st.text(st.characters(), max_size=40)
CONFIGS = st.builds(
    TokenizerConfig,
    lowercase=st.booleans(),
    accents=st.sampled_from(["keep", "strip"]),
    punctuation=st.sampled_from(["split", "drop", "keep"]),
    min_frequency=st.just(1),
)


@given(TEXTS, CONFIGS)
@settings(max_examples=400)
def test_every_token_knows_its_characters(text: str, config: TokenizerConfig) -> None:
    tokenizer = Tokenizer([], config)
    found = tokenizer.encode_with_offsets(text)
    assert len(found.tokens) == len(found.ids) == len(found.spans)
    end = 0
    for token, (start, stop) in zip(found.tokens, found.spans, strict=True):
        assert end <= start < stop <= len(text)
        assert tokenizer.normalize(text[start:stop]) == token
        end = stop


@given(st.lists(TEXTS, max_size=8), CONFIGS)
@settings(max_examples=200)
def test_encoding_by_pieces_is_encoding(texts: list[str], config: TokenizerConfig) -> None:
    tokenizer = Tokenizer.train(texts[::2], config)
    for _ in range(2):  # from Rust, and then as remembered
        encoded = tokenizer.encode(texts)
        assert len(encoded) == len(texts)
        for row, text in enumerate(texts):
            assert encoded.row(row).tolist() == tokenizer.encode_with_offsets(text).ids


@given(st.lists(st.text(st.sampled_from("ab \né!漢"), max_size=20)), CONFIGS)
def test_vocabulary_is_by_frequency_then_alphabet(texts: list[str], config: TokenizerConfig) -> None:
    tokenizer = Tokenizer.train(texts, config)
    counts = Counter(word for text in texts for word in tokenizer.split(text))
    assert tokenizer.words == sorted(counts, key=lambda word: (-counts[word], word))
    assert len(tokenizer) == len(counts) + 2


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Don't STOP!!", ["don't", "stop", "!", "!"]),
        ("it’s 'quoted'", ["it’s", "'", "quoted", "'"]),
        ("good😀😀", ["good", "😀", "😀"]),
        ("👩\u200d👩\u200d👧 👍🏽 ❤️", ["👩\u200d👩\u200d👧", "👍🏽", "❤️"]),
        ("我爱abc北京", ["我", "爱", "abc", "北", "京"]),
        ("かな ガ", ["か", "な", "ガ"]),
        ("שָׁלוֹם, مرحبا", ["שָׁלוֹם", ",", "مرحبا"]),
        ("नमस्ते", ["नमस्ते"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("한국어", ["한국어"]),
        ("a\0b\x07c", ["a", "b", "c"]),
        ("snake_case 3.14 #tag @you", ["snake_case", "3", ".", "14", "#", "tag", "@", "you"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("\ufeffstart\u200b", ["start"]),
        (" \t\r\n\u2028", []),
        ("", []),
    ],
)
def test_words(text: str, tokens: list[str]) -> None:
    found = Tokenizer([]).encode_with_offsets(text).tokens
    assert found == [unicodedata.normalize("NFC", token) for token in tokens]


def test_settings() -> None:
    text = "Ça va, don't! 5$ 😀"
    assert Tokenizer([], TokenizerConfig(lowercase=False)).split(text)[0] == "Ça"
    assert Tokenizer([], TokenizerConfig(accents="strip")).split(text)[0] == "ca"
    assert Tokenizer([], TokenizerConfig(punctuation="drop")).split(text) == ["ça", "va", "don't", "5", "😀"]
    assert Tokenizer([], TokenizerConfig(punctuation="keep")).split(text) == ["ça", "va,", "don't!", "5$", "😀"]


def test_rare_words_and_the_greatest_vocabulary() -> None:
    texts = ["b b b a a c c d"]
    assert Tokenizer.train(texts).words == ["b", "a", "c"]
    assert Tokenizer.train(texts, TokenizerConfig(max_words=2)).words == ["b", "a"]
    tokenizer = Tokenizer.train(texts, TokenizerConfig(min_frequency=3))
    encoded = tokenizer.encode(["b d b", ""])
    assert (encoded.row(0).tolist(), encoded.row(1).tolist()) == ([2, 1, 2], [])
    assert encoded.unknown_share == pytest.approx(1 / 3)


def test_texts_are_cut_and_counted() -> None:
    tokenizer = Tokenizer(["a", "b"]).limited(2)
    encoded = tokenizer.encode(["a b a", "a b", "b", ""])
    assert ([encoded.row(row).tolist() for row in range(4)], encoded.cut) == ([[2, 3], [2, 3], [3], []], 1)
    found = tokenizer.encode_with_offsets("a b a b")
    assert (found.tokens, found.spans, found.cut) == (["a", "b"], [(0, 1), (2, 3)], 2)
    assert tokenizer.limited(None).encode_with_offsets("a b a").cut == 0


@pytest.mark.parametrize("text", ["<no token>", "<unknown word>", "[PAD]", "[UNK]", "<pad>", "no token"])
@pytest.mark.parametrize("punctuation", ["split", "drop", "keep"])
def test_no_text_makes_padding(text: str, punctuation: str) -> None:
    tokenizer = Tokenizer.train([text], TokenizerConfig(min_frequency=1, punctuation=punctuation))  # type: ignore[arg-type]
    for encoded in (tokenizer.encode([text]).ids.tolist(), tokenizer.encode_with_offsets(text).ids):
        assert encoded
        assert min(encoded) >= 2


def test_half_a_surrogate_pair_is_read_as_a_question_mark() -> None:
    tokenizer = Tokenizer(["a", "?"])
    assert tokenizer.encode(["a \ud83d"]).ids.tolist() == [2, 3]
    assert tokenizer.encode_with_offsets("\udfffa").spans == [(0, 1), (1, 2)]


def test_a_document_of_a_megabyte() -> None:
    text = "Some words, and 😀 more " * 45_000
    tokenizer = Tokenizer.train([text])
    encoded = tokenizer.encode([text, "more"])
    found = tokenizer.encode_with_offsets(text)
    assert encoded.row(0).tolist() == found.ids
    assert text[slice(*found.spans[-1])] == "more"
    assert len(tokenizer.encode(["x" * (1 << 20)]).ids) == 1


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"word{number} and word{number + 1}" for number in range(9000)]
    tokenizer = Tokenizer.train(texts)
    plain = tokenizer.encode(texts).ids.tolist()
    monkeypatch.setattr(pieces, "MOST_PIECES", 100)
    small = Tokenizer(tokenizer.words)
    assert small.encode(texts).ids.tolist() == plain
    assert len(small._cache._numbers) == 0
    monkeypatch.setattr("capsroute.text.vocabulary.MOST_PIECES", 100)
    assert Tokenizer.train(texts).words == tokenizer.words


def test_threads_share_a_tokenizer() -> None:
    texts = [f"word{number % 701} and word{number}" for number in range(6000)]
    tokenizer = Tokenizer.train(texts)
    plain = Tokenizer(tokenizer.words).encode(texts).ids
    with ThreadPoolExecutor(4) as threads:
        for encoded in threads.map(lambda _: tokenizer.encode(texts), range(8)):
            assert np.array_equal(encoded.ids, plain)


def test_an_interrupted_encoding_leaves_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer(["a", "b"])

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pieces.PieceCache, "_learn", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tokenizer.encode(["a b"])
    assert tokenizer.encode(["a b"]).ids.tolist() == [2, 3]


def test_a_corpus_is_texts_enough() -> None:
    corpus = Corpus.of(["a b", "b"], ["x", "y"])
    assert Tokenizer.train(corpus).words == ["b"]
    assert Tokenizer(["b"]).encode(corpus).ids.tolist() == [1, 2, 2]


@given(st.lists(TEXTS, max_size=5), CONFIGS, st.none() | st.integers(1, 5))
@settings(max_examples=50)
def test_saved_is_loaded(texts: list[str], config: TokenizerConfig, max_length: int | None) -> None:
    tokenizer = Tokenizer.train(texts, config).limited(max_length)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tokenizer.json"
        tokenizer.save(file)
        again = Tokenizer.load(file)
    assert (again.words, again.config) == (tokenizer.words, tokenizer.config)
    assert again.encode(texts).ids.tolist() == tokenizer.encode(texts).ids.tolist()


def test_the_file_is_the_library_s_own(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["A b, a!"], TokenizerConfig(min_frequency=1))
    tokenizer.save(tmp_path / "tokenizer.json")
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    del content["capsroute"]
    plain = tokenizers.Tokenizer.from_str(json.dumps(content))
    assert plain.encode("b! A new").ids == tokenizer.encode_with_offsets("b! A new").ids


def test_a_file_of_an_older_library_says_less_and_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    Tokenizer(["a", "b"]).save(file)
    content = json.loads(file.read_text())
    for name in ("truncation", "padding", "post_processor", "decoder"):
        del content[name]
    file.write_text(json.dumps(content))
    assert Tokenizer.load(file).words == ["a", "b"]


def test_copies_are_equal() -> None:
    tokenizer = Tokenizer(["a"], TokenizerConfig(max_length=3))
    for twin in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert (twin.words, twin.config) == (tokenizer.words, tokenizer.config)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: "", "holds no tokenizer that capsroute wrote"),
        (lambda text: text[: len(text) // 2], "holds no tokenizer that capsroute wrote"),
        (lambda _: "[]", "holds no tokenizer that capsroute wrote"),
        (
            lambda text: text.replace('"capsroute"', '"other"'),
            r"holds no tokenizer that capsroute wrote \('capsroute'\)",
        ),
        (
            lambda text: text.replace('"lowercase"', '"lowercas"'),
            "unknown setting 'lowercas'; did you mean 'lowercase'",
        ),
        (lambda text: text.replace('"punctuation": "split"', '"punctuation": "drop"'), "rules were changed"),
        (lambda text: text.replace('"b": 3', '"b": 4'), "vocabulary or its rules were changed"),
        (lambda text: text.replace("<no token>", "[PAD]"), "vocabulary or its rules were changed"),
        (lambda text: text.replace('"min_frequency": 1', '"min_frequency": 0'), "min_frequency must be at least 1"),
    ],
)
def test_broken_file_is_refused(tmp_path: Path, change: object, reason: str) -> None:
    file = tmp_path / "tokenizer.json"
    Tokenizer(["a", "b"], TokenizerConfig(min_frequency=1)).save(file)
    file.write_text(change(file.read_text()))  # type: ignore[operator]
    with pytest.raises(TokenizerError, match=reason):
        Tokenizer.load(file)


def test_missing_file() -> None:
    with pytest.raises(TokenizerError, match=r"'nowhere.json' holds no tokenizer .*No such file"):
        Tokenizer.load("nowhere.json")


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match="unknown punctuation 'splt'; did you mean 'split'"):
        TokenizerConfig(punctuation="splt")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown accents 'no'"):
        TokenizerConfig(accents="no")  # type: ignore[arg-type]
    for name in ("min_frequency", "max_words", "max_length"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, but is 0"):
            TokenizerConfig(**{name: 0})
    with pytest.raises(ValueError, match="words must differ"):
        Tokenizer(["a", "a"])
