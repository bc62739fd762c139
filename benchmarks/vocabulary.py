"""Does a step cost more with more words? Only the rows of words that occur are moved."""

from typing import Any

from benchmarks.measure import interleaved
from benchmarks.step import own_case

WORDS = (20_000, 100_000, 300_000)


def run(*, smoke: bool = False) -> list[dict[str, Any]]:
    """The step at length 100 with each vocabulary; the texts have as many different words."""
    sizes, length = ((100, 200), 10) if smoke else (WORDS, 100)
    # The same texts for all: words 1 to the smallest vocabulary, so that only the tables differ.
    cases = {size: own_case("graph", length=length, vocabulary=size, words_used=sizes[0]) for size in sizes}
    seconds = interleaved(cases, rounds=1 if smoke else 15)
    return [
        {
            "question": "vocabulary",
            "case": f"{size:,} words",
            "words": size,
            "ms": 1e3 * seconds[size],
            "of smallest": seconds[size] / seconds[sizes[0]],
        }
        for size in sizes
    ]
