"""Texts that are easy to tell apart, and settings of a network that is small: for tests of everything around it."""

from typing import Any

import numpy as np

SMALL: dict[str, Any] = {
    "epochs": 12,
    "batch_size": 8,
    "learning_rate": 0.02,
    "patience": None,
    "word_dim": 16,
    "filters": 8,
    "kinds": 4,
    "dim": 4,
    "children": 4,
    "dropout": 0.0,
    "min_frequency": 1,
}
WORDS = {"good": ["fine", "lovely", "bright"], "bad": ["dull", "broken", "sad"], "odd": ["strange", "queer", "weird"]}
FILLER = ["the", "day", "was", "and", "film", "then", "one", "thing"]


def toy(texts: int = 60, labels: tuple[str, ...] = ("bad", "good"), seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts in which one word decides."""
    draw = np.random.default_rng(seed)
    names = [labels[number % len(labels)] for number in range(texts)]
    made = []
    for name in names:
        words = [str(draw.choice(FILLER)) for _ in range(int(draw.integers(2, 7)))]
        words.insert(int(draw.integers(len(words) + 1)), str(draw.choice(WORDS[name])))
        made.append(" ".join(words) + ".")
    return made, names
