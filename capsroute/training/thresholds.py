"""From which score on a text has a label, where it may have several: chosen for each label on the validation part.

>>> tune_thresholds(np.array([[0.9], [0.6], [0.4], [0.1]]), np.array([[1], [1], [1], [0]])).round(2).tolist()
[0.25]
"""

import numpy as np
from jaxtyping import Float, Shaped

USUAL = 0.5
"""For a label that the validation part does not have."""


def tune_thresholds(
    scores: Float[np.ndarray, "text class"], table: Shaped[np.ndarray, "text class"]
) -> Float[np.ndarray, " class"]:
    """The threshold with the best F1 of each label, in the middle between two scores that occur."""
    return np.array([_best(scores[:, label], table[:, label] > 0) for label in range(scores.shape[1])])


def _best(scores: Float[np.ndarray, " text"], has: Shaped[np.ndarray, " text"]) -> float:
    if not has.any():
        return USUAL
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], np.cumsum(has[order])
    # Cutting behind the n-th text names n texts: F1 = 2 right / (named + wanted).
    f1 = 2 * right / (np.arange(1, len(ranked) + 1) + right[-1])
    f1[:-1][ranked[:-1] == ranked[1:]] = -1  # no threshold lies between equal scores
    last = int(np.argmax(f1))
    below = ranked[last + 1] if last + 1 < len(ranked) else 0.0
    return float((ranked[last] + below) / 2)
