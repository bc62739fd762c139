"""Words -> n-gram features: an embedding and one ReLU convolution for each width.

    g_t = relu(W x_{t s} .. x_{t s + K - 1} + b)        s stride, K width of the n-gram

Paper, eq. 1, with random 300-d words, K = 3, s = 2, 64 filters. Several widths in one column are laid behind each
other along the position axis and share what follows; several columns (Capsule-B of Zhao et al. 2018) share the
words only. Positions are counted by `windows.py`: padding never makes or changes one.
Parameters: vocabulary * word_dim, and filters * (K * word_dim + 1) for each width.

>>> encoder = NgramEncoder(vocabulary=100, word_dim=8, columns=((3,), (4, 5)), filters=6, stride=2)
>>> [features.values.shape for features in encoder(torch.randint(1, 100, (2, 11)))]
[torch.Size([2, 5, 6]), torch.Size([2, 9, 6])]
"""

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from capsroute.capsules.guards import is_a, may_look, number, whole
from capsroute.capsules.scales import WORD_RANGE, WORD_RMS, convolution_std
from capsroute.checks import above, at_least, has_shape
from capsroute.encoders.base import PADDING, Features
from capsroute.encoders.windows import padding_needed, window_count, window_mask, window_spans

Widths = Sequence[int]


class NgramEncoder(nn.Module):
    """Token ids -> the features of each column.

    Args:
        vocabulary: number of token ids, the padding id 0 included.
        columns: the n-gram widths of each column; `((3,),)` is one column of trigrams.
        filters: features of each n-gram.
        dropout: share of the numbers of the word vectors that training sets to zero.
    """

    feature_rms = WORD_RMS  # He's scale keeps that of the words

    def __init__(
        self,
        *,
        vocabulary: int,
        word_dim: int,
        columns: Sequence[Widths],
        filters: int,
        stride: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        whole("vocabulary", vocabulary, 2)
        whole("word_dim", word_dim, 1)
        whole("filters", filters, 1)
        whole("stride", stride, 1)
        number("dropout", dropout)
        at_least("dropout", dropout, 0)
        above("1 - dropout", 1 - dropout, 0)
        if not are_columns(columns):
            raise ValueError(
                f"columns must name at least one n-gram width each, as in ((3,), (4,)), but are {columns!r}."
            )
        for width in (width for column in columns for width in column):
            whole("an n-gram width", width, stride)  # a narrower window would leave words unread
        self.stride = stride
        self.columns = tuple(tuple(column) for column in columns)
        self.words = nn.Embedding(vocabulary, word_dim, padding_idx=PADDING)
        self.dropout = nn.Dropout(dropout)
        self.convolutions = nn.ModuleDict(
            {
                f"column{c}_width{width}": nn.Conv1d(word_dim, filters, width, stride=stride)
                for c, column in enumerate(self.columns)
                for width in column
            }
        )
        self._set_scales()

    @torch.no_grad()
    def _set_scales(self) -> None:
        self.words.weight.uniform_(-WORD_RANGE, WORD_RANGE)
        self.words.weight[PADDING].zero_()
        for convolution in self.convolutions.values():
            assert isinstance(convolution, nn.Conv1d)
            convolution.weight.normal_(std=convolution_std(convolution.kernel_size[0], convolution.in_channels))
            assert convolution.bias is not None
            convolution.bias.zero_()

    def forward(self, ids: Int[Tensor, "batch token"]) -> list[Features]:
        _check_known(ids, self.words)
        vectors = self.dropout(self.words(ids)).transpose(1, 2)
        mask = ids != PADDING
        return [self._column(c, vectors, mask) for c in range(len(self.columns))]

    def _column(self, column: int, words: Tensor, mask: Tensor) -> Features:
        parts = [self._ngrams(column, width, words, mask) for width in self.columns[column]]
        if len(parts) == 1:
            return parts[0]
        values, masks, spans = zip(*parts, strict=True)
        return Features(torch.cat(values, dim=1), torch.cat(masks, dim=1), torch.cat(spans, dim=0))

    def _ngrams(self, column: int, width: int, words: Tensor, mask: Tensor) -> Features:
        missing = padding_needed(mask.shape[1], width, self.stride)
        values = self.convolutions[f"column{column}_width{width}"](F.pad(words, (0, missing)))
        real = window_mask(mask, width, self.stride)
        values = values.relu().transpose(1, 2) * real[:, :, None]
        return Features(values, real, window_spans(values.shape[1], width, self.stride, mask.device))

    def positions(self, tokens: int, column: int = 0) -> int:
        """How many positions a text of that many tokens has in a column."""
        return sum(window_count(tokens, width, self.stride) for width in self.columns[column])


def are_columns(columns: object) -> bool:
    """Whether they are sequences of sequences, none of them empty."""

    def filled(part: object) -> bool:
        return isinstance(part, list | tuple) and len(part) > 0  # pyright: ignore[reportUnknownArgumentType]

    return filled(columns) and all(filled(column) for column in cast(list[object], columns))


def check_ids(ids: Tensor) -> Tensor:
    """Token ids as [batch, token] integers with at least one token column, or an error."""
    is_a("ids", ids, Tensor)
    has_shape("ids", ids, batch=None, token=None)
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"ids must be int64 or int32 token numbers, but have the dtype {ids.dtype}.")
    if ids.shape[1] == 0:
        return ids.new_full((ids.shape[0], 1), PADDING)  # a batch of empty texts: all padding
    return ids


def check_range(ids: Tensor, vocabulary: int) -> None:
    """Refuse ids that no vector belongs to."""
    if may_look(ids) and ids.numel() and (ids.min() < 0 or ids.max() >= vocabulary):
        raise ValueError(
            f"ids must lie between 0 and {vocabulary - 1}, for a vocabulary of {vocabulary}, "
            f"but lie between {int(ids.min())} and {int(ids.max())}."
        )


def _check_known(ids: Tensor, words: nn.Module) -> None:
    """The range of an embedding; another layer that gives words may stand in its place."""
    if isinstance(words, nn.Embedding):
        check_range(ids, words.num_embeddings)
