"""The convolutional capsule layer of Capsule-A and Capsule-B (Zhao et al. 2018, section 2.3).

Every window of `width` positions routes all its capsules, of every kind, to `parents` new capsules, with one
transformation W_j for all places:

    q_tj = routing over { W_j p_{t', k} + b_j : t s <= t' < t s + width, all k }

It wraps a primary layer and is called like one, so a compression does not know which of the two it has.
Parameters: parents * dim * (dim + 1), whatever the length of the text.
"""

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capsroute.capsules.guards import whole
from capsroute.capsules.primary import Capsules, PrimaryCapsules
from capsroute.capsules.scales import coherence_of_windows
from capsroute.capsules.votes import Vote
from capsroute.encoders.windows import padding_needed, window_mask


class ConvolutionalCapsules(nn.Module):
    """Capsules by position -> fewer capsules by position, each routed from a window.

    Args:
        primary: the layer below, called first.
        vote: shared votes (a window has no fixed children at the end of a text).
        routing: from any number of children to `kinds` parents.
        kinds: parents of each window, the new kinds.
        width, stride: of the windows, in positions; stride 1 in the paper of Capsule-A.
    """

    def __init__(
        self,
        primary: PrimaryCapsules,
        vote: Vote,
        routing: nn.Module,
        *,
        kinds: int,
        width: int,
        stride: int = 1,
    ) -> None:
        super().__init__()
        whole("stride", stride, 1)
        whole("width", width, stride)
        self.primary = primary
        self.vote = vote
        self.routing = routing
        self.kinds = kinds
        self.width = width
        self.stride = stride
        self.initial_length = primary.initial_length  # the votes are scaled for the same length after squash
        self.coherence = coherence_of_windows(width, primary.coherence)

    def forward(
        self, features: Float[Tensor, "batch position feature"], mask: Bool[Tensor, "batch position"]
    ) -> Capsules:
        capsules, mask = self.primary(features, mask)
        batch, positions, _, dim = capsules.shape
        missing = padding_needed(positions, self.width, self.stride)
        # [batch, window, width, kind, dim] and the same of the mask; a window's capsules become one axis
        seen = F.pad(capsules, (0, 0, 0, 0, 0, missing)).unfold(1, self.width, self.stride).movedim(-1, 2)
        there = F.pad(mask, (0, missing)).unfold(1, self.width, self.stride)
        children = seen.flatten(2, 3).flatten(0, 1)
        there = there.repeat_interleave(capsules.shape[2], dim=2).flatten(0, 1)
        parents: Tensor = self.routing(children, self.vote, there).parents
        real = window_mask(mask, self.width, self.stride)
        return Capsules(
            parents.reshape(batch, -1, self.kinds, dim) * real[:, :, None, None],
            real,
        )
