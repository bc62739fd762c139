"""The data that training reads, in memory and tiny for all its tests, and the functions that look at targets."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor, nn

from capsroute.training import hold_out
from capsroute.training.class_weights import WeightedLoss, balanced
from capsroute.training.data import BatchSource, count_right, fingerprint
from capsroute.training.losses import make_loss

WORDS, CLASSES = 40, 3


class MemoryBatch(NamedTuple):
    ids: Tensor
    targets: Tensor
    rows: np.ndarray


class MemoryBatches:
    """Texts in memory, in an order of the seed and the epoch.

    Args:
        watch: called with (epoch, batch) before a batch is given.
    """

    def __init__(
        self,
        ids: Tensor,
        targets: Tensor,
        *,
        batch_size: int = 8,
        seed: int = 0,
        watch: Callable[[int, int], object] | None = None,
    ) -> None:
        self.ids, self.targets, self.batch_size, self.seed, self.watch = ids, targets, batch_size, seed, watch

    def __len__(self) -> int:
        return -(-len(self.ids) // self.batch_size)

    def epoch(self, number: int, start: int = 0) -> Iterator[MemoryBatch]:
        order = np.random.default_rng([self.seed, number]).permutation(len(self.ids))
        for batch in range(start, len(self)):
            if self.watch:
                self.watch(number, batch)
            rows = order[batch * self.batch_size :][: self.batch_size]
            yield MemoryBatch(self.ids[rows], self.targets[rows], rows)


class TinyOutput(NamedTuple):
    scores: Tensor
    activation: Tensor


class TinyNetwork(nn.Module):
    """Mean of word vectors, dropout, one layer: all that a network has for training, in a millisecond."""

    def __init__(self, *, words: int = WORDS, classes: int = CLASSES, dropout: float = 0.3) -> None:
        super().__init__()
        self.words = nn.Embedding(words, 6, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(6, classes)

    def forward(self, ids: Tensor) -> TinyOutput:
        logits = self.output(self.dropout(self.words(ids).mean(dim=1)))
        return TinyOutput(logits.sigmoid(), logits.sigmoid())


def tiny_network(seed: int = 0, **sizes: float) -> TinyNetwork:
    torch.manual_seed(seed)
    return TinyNetwork(**sizes)  # type: ignore[arg-type]


def texts(number: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Texts of 1 to 7 words, each with two words of its class and the others of none."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(0, CLASSES, (number,), generator=generator)
    ids = torch.randint(1 + 2 * CLASSES, WORDS, (number, 7), generator=generator)
    ids[:, 0], ids[:, 1] = 1 + 2 * targets, 2 + 2 * targets
    lengths = torch.randint(2, 8, (number, 1), generator=generator)
    return ids.masked_fill(torch.arange(7) >= lengths, 0), targets


def batches_of(number: int, *, seed: int = 0, **options: object) -> MemoryBatches:
    return MemoryBatches(*texts(number, seed=seed), **options)  # type: ignore[arg-type]


def test_the_batches_in_memory_are_what_training_asks_for() -> None:
    batches = batches_of(20)
    assert isinstance(batches, BatchSource)
    first, again = ([batch.rows.tolist() for batch in batches.epoch(2)] for _ in range(2))
    assert first == again
    assert first != [batch.rows.tolist() for batch in batches.epoch(3)]
    assert [batch.rows.tolist() for batch in batches.epoch(2, start=1)] == first[1:]


def test_a_fingerprint_tells_data_apart() -> None:
    ids, targets = texts(20)
    same = fingerprint(MemoryBatches(ids, targets), None)
    assert same == fingerprint(MemoryBatches(ids.clone(), targets.clone()), None)
    others = [
        fingerprint(MemoryBatches(ids, targets), MemoryBatches(ids, targets)),
        fingerprint(MemoryBatches(ids, targets, seed=1), None),
        fingerprint(MemoryBatches(ids, targets, batch_size=7), None),
        fingerprint(MemoryBatches(ids, (targets + 1) % CLASSES), None),
        fingerprint(MemoryBatches(torch.cat([ids, ids]), torch.cat([targets, targets])), None),
    ]
    assert len({same, *others}) == 1 + len(others)


def test_texts_with_all_labels_right_are_counted() -> None:
    scores = torch.tensor([[0.9, 0.2, 0.6], [0.1, 0.5, 0.4]])
    assert count_right(scores, torch.tensor([0, 0])) == 1
    assert count_right(scores, torch.tensor([[1.0, 0, 1], [0, 1, 1]])) == 1  # 0.5 is a label


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    ids, _ = texts(60)
    targets = torch.tensor([0] * 40 + [1] * 15 + [2] * 5)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=targets.numpy())
    weights = balanced(MemoryBatches(ids, targets), 4)
    torch.testing.assert_close(weights, torch.tensor([*expected, 1.0]).float())
    assert weights[targets].mean() == pytest.approx(1)


def test_balanced_weights_of_several_labels_count_labels() -> None:
    ids, _ = texts(4)
    table = torch.tensor([[1.0, 1], [1, 0], [1, 0], [0, 0]])
    torch.testing.assert_close(balanced(MemoryBatches(ids, table), 2), torch.tensor([4 / (2 * 3), 4 / (2 * 1)]))


def test_balanced_weights_refuse_more_classes_than_the_network_has() -> None:
    with pytest.raises(ValueError, match="targets name 3 classes, but the network has 2"):
        balanced(MemoryBatches(texts(3)[0], torch.tensor([0, 1, 2])), 2)


def test_a_weighted_loss_weighs_each_text_and_keeps_the_schedule_of_the_loss() -> None:
    spread = make_loss("spread")
    loss = WeightedLoss(spread, torch.tensor([1.0, 3.0]))
    activation, targets = torch.rand(5, 2), torch.tensor([0, 1, 1, 0, 1])
    expected = (spread.of(activation, targets) * torch.tensor([1.0, 3, 3, 1, 3])).sum() / 5
    torch.testing.assert_close(loss(activation, targets), expected)
    margin = float(spread.margin)
    loss.end_epoch()
    assert float(spread.margin) == pytest.approx(margin + 0.1)
    assert list(loss.state_dict()) == ["loss.margin"]  # weights are counted anew when a run is resumed
    with pytest.raises(ValueError, match="takes one label a text"):
        loss(activation, torch.zeros(5, 2))


def test_a_weighted_loss_of_several_labels_takes_the_mean_of_their_weights() -> None:
    margin = make_loss("margin")
    loss = WeightedLoss(margin, torch.tensor([1.0, 3.0]))
    activation, table = torch.rand(4, 2), torch.tensor([[1.0, 0], [0, 1], [1, 1], [0, 0]])
    expected = (margin.of(activation, table) * torch.tensor([1.0, 3, 2, 1])).mean()
    torch.testing.assert_close(loss(activation, table), expected)


def test_hold_out_keeps_the_shares_of_the_classes() -> None:
    targets = np.repeat([0, 1, 2, 3], [500, 300, 150, 50])
    np.random.default_rng(0).shuffle(targets)
    kept, aside = hold_out(targets, share=0.1, seed=3)
    assert np.bincount(targets[aside]).tolist() == [50, 30, 15, 5]
    assert sorted([*kept, *aside]) == list(range(1000))
    assert np.all(np.diff(kept) > 0)
    assert np.array_equal(aside, hold_out(targets, share=0.1, seed=3)[1])
    assert not np.array_equal(aside, hold_out(targets, share=0.1, seed=4)[1])


def test_hold_out_leaves_a_text_of_every_class_to_learn_from() -> None:
    targets = np.array([0, 0, 1, 2, 2, 2])
    kept, aside = hold_out(targets, share=0.5, seed=0)
    assert len(aside) == 3
    assert set(targets[kept]) == {0, 1, 2}


def test_hold_out_of_several_labels_spreads_the_rare_ones() -> None:
    table = np.zeros((100, 3))
    table[:, 0] = 1
    table[:20, 1] = 1
    table[95:] = 0
    kept, aside = hold_out(table, share=0.2, seed=0)
    assert table[aside, 1].sum() == 4
    assert (table[aside].sum(axis=1) == 0).sum() == 1
    assert len(kept) == 80


@pytest.mark.parametrize("targets", [[0, 1, 2], [0, 0], [0]])
def test_hold_out_refuses_too_few_texts(targets: list[int]) -> None:
    with pytest.raises(ValueError, match="too few to set 10% of them aside"):
        hold_out(np.array(targets), seed=0)
