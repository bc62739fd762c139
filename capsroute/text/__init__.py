"""Words in: files of labelled texts -> a corpus -> labels and token ids -> batches.

read_corpus, load_source     a file, a folder, a named data set -> Corpus
check_data                   what is in it, and what is wrong with it
Labels, Tokenizer            label names and words <-> numbers
Batches                      numbers, a few texts at a time
"""

from capsroute.text.batches import Batch, Batches
from capsroute.text.catalog import SOURCES, Source
from capsroute.text.check_data import DataReport, check_data
from capsroute.text.corpus import Corpus
from capsroute.text.encoded import EncodedTexts, suggest_max_length
from capsroute.text.labels import LabelError, Labels
from capsroute.text.problems import BadRow, CorpusError
from capsroute.text.reading import ReadOptions, read_corpus, stream_corpus
from capsroute.text.sources import SourceReport, Split, load_source
from capsroute.text.statistics import Statistics, statistics
from capsroute.text.tokens import Tokenizer, TokenizerConfig, TokenizerError, TokenSpans

__all__ = [
    "SOURCES",
    "BadRow",
    "Batch",
    "Batches",
    "Corpus",
    "CorpusError",
    "DataReport",
    "EncodedTexts",
    "LabelError",
    "Labels",
    "ReadOptions",
    "Source",
    "SourceReport",
    "Split",
    "Statistics",
    "TokenSpans",
    "Tokenizer",
    "TokenizerConfig",
    "TokenizerError",
    "check_data",
    "load_source",
    "read_corpus",
    "statistics",
    "stream_corpus",
    "suggest_max_length",
]
