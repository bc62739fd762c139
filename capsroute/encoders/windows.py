"""Windows over a sequence: how many there are and which are real.

Windows of `width` lie `stride` apart. A sequence of L items has one window if L <= width, else
ceil((L - width) / stride) + 1: as many as it takes to read every item. Where (L - width) is a multiple of the
stride these are the floor((L - width) / stride) + 1 windows of a valid convolution; otherwise the last window
reaches past the end, over zeros, so that no last word goes unread. The number depends on the sequence alone, never
on the padding behind it.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def window_count(items: int, width: int, stride: int) -> int:
    """How many windows it takes to read that many items."""
    return 1 if items <= width else -(-(items - width) // stride) + 1


def padding_needed(items: int, width: int, stride: int) -> int:
    """How many zeros the last window reads behind the items."""
    return (window_count(items, width, stride) - 1) * stride + width - items


def window_mask(mask: Bool[Tensor, "batch item"], width: int, stride: int) -> Bool[Tensor, "batch position"]:
    """Which windows are real: the first if there is any item, each later one if the one before left items unread."""
    place = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    last = (mask * place).amax(dim=1, keepdim=True)  # items up to the last real one
    position = torch.arange(window_count(mask.shape[1], width, stride), device=mask.device)
    unread_from = (position - 1) * stride + width  # first item that the windows before this one have not read
    return last > unread_from.clamp_min(0) * (position > 0)


def window_spans(positions: int, width: int, stride: int, device: torch.device) -> Int[Tensor, "position 2"]:
    """Items [start, stop) under each window."""
    start = torch.arange(positions, device=device) * stride
    return torch.stack([start, start + width], dim=1)
