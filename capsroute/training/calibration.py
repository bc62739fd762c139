"""Scores -> probabilities that mean what they say: one number, fitted on the validation part.

    p_c = exp(sharpness * s_c) / sum_k exp(sharpness * s_k)

Class lengths lie between 0 and 1 and say which class is likeliest, not how likely: divided by their sum they are all
near 1 / classes. The sharpness with the smallest log loss on texts that were not learned from makes them
probabilities; it is the inverse of the temperature of Guo et al. 2017, On Calibration of Modern Neural Networks
(arXiv 1706.04599). It is positive, so that no ranking changes.

>>> scores = np.array([[0.8, 0.2], [0.6, 0.4], [0.7, 0.3], [0.4, 0.6]])
>>> round(fit_sharpness(scores, np.array([0, 0, 1, 1])), 1)
2.2
"""

import numpy as np
from jaxtyping import Float, Int

SMALLEST, LARGEST = 1e-2, 1e3
"""Where all texts are right there is no best sharpness, only a larger one."""


def probabilities(scores: Float[np.ndarray, "text class"], sharpness: float) -> Float[np.ndarray, "text class"]:
    """The softmax of the sharpened scores."""
    powers = np.exp(sharpness * (scores - scores.max(axis=1, keepdims=True)))
    return powers / powers.sum(axis=1, keepdims=True)


def fit_sharpness(scores: Float[np.ndarray, "text class"], targets: Int[np.ndarray, " text"]) -> float:
    """The sharpness with the smallest log loss: the loss is convex in it, so its slope changes sign once."""
    own = scores[np.arange(len(targets)), targets]
    low, high = np.log(SMALLEST), np.log(LARGEST)
    for _ in range(60):
        middle = (low + high) / 2
        expected = (probabilities(scores, float(np.exp(middle))) * scores).sum(axis=1)
        low, high = (low, middle) if (expected - own).mean() > 0 else (middle, high)
    return float(np.exp((low + high) / 2))
