"""What an encoder gives: features by position, which of them are real, and which tokens each has seen."""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor


class Features(NamedTuple):
    """Features of a batch of texts."""

    values: Float[Tensor, "batch position feature"]  # zero where there is no position
    mask: Bool[Tensor, "batch position"]
    spans: Int[Tensor, "position 2"]  # tokens [start, stop) that a position has seen


PADDING = 0  # the id of "no token"; tokenizers number their words from 1
