"""Primary capsules: at every position, each of `kinds` capsules reads the features and is squashed.

    p_tk = squash(W_k g_t + b_k)        paper, eq. 2: a 1 x 1 convolution, 64 features -> 64 kinds of 64 dimensions

Cost per position: features * kinds * dim multiply-adds; parameters (features + 1) * kinds * dim.

>>> primary = PrimaryCapsules(features=6, kinds=3, dim=4)
>>> capsules, mask = primary(torch.randn(2, 5, 6), torch.ones(2, 5, dtype=torch.bool))
>>> capsules.shape
torch.Size([2, 5, 3, 4])
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capsroute.capsules.guards import has_dtype_of, is_a, whole
from capsroute.capsules.scales import RELU_COHERENCE, WORD_RMS, primary_std, squashed_one
from capsroute.capsules.squash import SQUASHES, SquashKind, squash
from capsroute.checks import has_shape, one_of


class Capsules(NamedTuple):
    """Capsules by position and kind, and which positions are real."""

    values: Float[Tensor, "batch position kind dim"]  # zero where there is no position
    mask: Bool[Tensor, "batch position"]


class PrimaryCapsules(nn.Module):
    """Features -> kinds of capsules at every position.

    Args:
        feature_rms: root mean square of the features at the start, from the encoder; it sets the initial scale.
    """

    def __init__(
        self,
        *,
        features: int,
        kinds: int,
        dim: int,
        squash: SquashKind = "sabour",
        feature_rms: float = WORD_RMS,
    ) -> None:
        super().__init__()
        whole("features", features, 1)
        whole("kinds", kinds, 1)
        whole("dim", dim, 1)
        one_of("squash", squash, SQUASHES)
        self.kinds = kinds
        self.dim = dim
        self.squash: SquashKind = squash
        self.weight = nn.Parameter(torch.randn(kinds * dim, features) * primary_std(features, dim, feature_rms))
        self.bias = nn.Parameter(torch.zeros(kinds * dim))
        self.initial_length = squashed_one(squash)
        self.coherence = RELU_COHERENCE

    def forward(
        self, features: Float[Tensor, "batch position feature"], mask: Bool[Tensor, "batch position"]
    ) -> Capsules:
        self.check(features)
        raw = F.linear(features, self.weight, self.bias).view(*features.shape[:2], self.kinds, self.dim)
        capsules = squash(raw, self.squash)
        return Capsules(capsules * mask[:, :, None, None], mask)

    def check(self, features: Tensor) -> None:
        """Refuse features of another shape or precision than the weights that read them."""
        is_a("features", features, Tensor)
        has_shape("features", features, batch=None, position=None, feature=self.weight.shape[1])
        has_dtype_of("features", features, self)
