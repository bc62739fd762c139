"""How often each word occurs: what a vocabulary is made of, in memory that does not grow with the number of texts."""

from collections import Counter
from collections.abc import Iterable

from tokenizers.normalizers import Normalizer
from tokenizers.pre_tokenizers import PreTokenizer

from capsroute.text.pieces import MOST_CHARACTERS, MOST_PIECES, is_plain, pieces_of, plain_word


def count_words(
    texts: Iterable[str], normalizer: Normalizer, splitter: PreTokenizer, *, lowercase: bool
) -> Counter[str]:
    """The words of all texts. Pieces between spaces are counted first, so that each is split once (`pieces.py`)."""
    words: Counter[str] = Counter()
    pieces: Counter[str] = Counter()
    characters = 0
    for text in texts:
        pieces.update(pieces_of(text))
        characters += len(text)
        if len(pieces) > MOST_PIECES or characters > MOST_CHARACTERS:
            _add(words, pieces, normalizer, splitter, lowercase)
            pieces.clear()
            characters = 0
    _add(words, pieces, normalizer, splitter, lowercase)
    return words


def _add(
    words: Counter[str], pieces: Counter[str], normalizer: Normalizer, splitter: PreTokenizer, lowercase: bool
) -> None:
    for piece, count in pieces.items():
        if is_plain(piece):
            words[plain_word(piece, lowercase)] += count
            continue
        for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(piece)):
            words[word] += count
