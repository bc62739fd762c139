"""What a user would otherwise pick, called and trained like a capsule network: ids -> scores.

    TextCnn        Kim 2014 (arXiv 1408.5882): n-gram filters, the maximum of each over the text, a linear layer
    BagOfNgrams    Joulin et al. 2016 (arXiv 1607.01759, fastText): mean of word and n-gram vectors, a linear layer

Their activation is a logit, so they go with cross-entropy of scale 1.

>>> TextCnn(vocabulary=100, classes=3, word_dim=8, filters=4)(torch.randint(1, 100, (2, 11))).scores.shape
torch.Size([2, 3])
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from capsroute.capsules.guards import number, whole
from capsroute.capsules.scales import WORD_RANGE
from capsroute.checks import above, at_least
from capsroute.encoders.base import PADDING
from capsroute.encoders.ngram import NgramEncoder, are_columns, check_ids, check_range


class BaselineOutput(NamedTuple):
    """What a baseline returns; the fields that training reads have the names of `model.Output`."""

    scores: Float[Tensor, "batch class"]  # softmax of the logits
    activation: Float[Tensor, "batch class"]  # the logits, for the loss


class TextCnn(nn.Module):
    """Kim's network: 100 filters of each width, dropout 0.5 before the linear layer."""

    def __init__(
        self,
        *,
        vocabulary: int,
        classes: int,
        word_dim: int = 300,
        widths: Sequence[int] = (3, 4, 5),
        filters: int = 100,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        whole("classes", classes, 1)
        number("dropout", dropout)
        at_least("dropout", dropout, 0)
        above("1 - dropout", 1 - dropout, 0)
        if not are_columns((widths,)):
            raise ValueError(f"widths must name at least one n-gram width, as in (3, 4), but are {widths!r}.")
        self.settings = {
            "vocabulary": vocabulary,
            "classes": classes,
            "word_dim": word_dim,
            "widths": list(widths),
            "filters": filters,
            "dropout": dropout,
        }
        columns = tuple((width,) for width in widths)
        self.encoder = NgramEncoder(
            vocabulary=vocabulary, word_dim=word_dim, columns=columns, filters=filters, stride=1
        )
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(filters * len(columns), classes)

    def forward(self, ids: Tensor) -> BaselineOutput:
        # A feature is a ReLU, so the zero of a masked position is no larger than any: it never wins.
        largest = [features.values.amax(dim=1) for features in self.encoder(check_ids(ids))]
        logits = self.output(self.dropout(torch.cat(largest, dim=1)))
        return BaselineOutput(logits.softmax(dim=1), logits)


class BagOfNgrams(nn.Module):
    """A mean of vectors and a linear layer.

    Args:
        ngrams: the longest n-gram that has a vector of its own.
        buckets: vectors that the n-grams of two words and more share, by a hash.
    """

    def __init__(
        self, *, vocabulary: int, classes: int, word_dim: int = 100, ngrams: int = 2, buckets: int = 100_000
    ) -> None:
        super().__init__()
        whole("vocabulary", vocabulary, 2)
        whole("classes", classes, 1)
        whole("word_dim", word_dim, 1)
        whole("ngrams", ngrams, 1)
        whole("buckets", buckets, 1)
        self.settings = {
            "vocabulary": vocabulary,
            "classes": classes,
            "word_dim": word_dim,
            "ngrams": ngrams,
            "buckets": buckets,
        }
        self.vocabulary = vocabulary
        self.ngrams = ngrams
        self.buckets = buckets
        rows = vocabulary + (buckets if ngrams > 1 else 0)
        self.vectors = nn.Embedding(rows, word_dim, padding_idx=PADDING)
        self.output = nn.Linear(word_dim, classes)
        with torch.no_grad():
            self.vectors.weight.uniform_(-WORD_RANGE, WORD_RANGE)
            self.vectors.weight[PADDING].zero_()

    def forward(self, ids: Tensor) -> BaselineOutput:
        ids = check_ids(ids).long()
        check_range(ids, self.vocabulary)  # a larger id would read the vector of an n-gram
        grams, there = self._grams(ids)
        count = there.sum(dim=1, keepdim=True).clamp_min(1)
        mean = self.vectors(grams).sum(dim=1) / count
        logits = self.output(mean)
        return BaselineOutput(logits.softmax(dim=1), logits)

    def _grams(self, ids: Int[Tensor, "batch token"]) -> tuple[Int[Tensor, "batch gram"], Bool[Tensor, "batch gram"]]:
        """Rows of all n-grams of each text, the words first; PADDING where one would reach past the end."""
        there = ids != PADDING
        rows, masks, rolling = [ids], [there], ids
        for n in range(2, min(self.ngrams, ids.shape[1]) + 1):
            following = ids[:, n - 1 :]
            # A polynomial of the ids in wrapping integers: the same n-gram has the same row everywhere.
            rolling = rolling[:, :-1] * 116_049_371 + following
            inside = masks[-1][:, :-1] & there[:, n - 1 :]
            rows.append(torch.where(inside, self.vocabulary + rolling % self.buckets, PADDING))
            masks.append(inside)
        return torch.cat(rows, dim=1), torch.cat(masks, dim=1)
