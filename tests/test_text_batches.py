"""Every text once an epoch, in an order that seed and epoch decide, with little padding."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capsroute.text import Batches, EncodedTexts, suggest_max_length
from capsroute.text.encoded import ends

LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=60)


def encoded(lengths: list[int]) -> EncodedTexts:
    """Texts whose ids tell their row: row r has ids r + 1."""
    offsets = ends(np.array(lengths, dtype=np.int64))
    return EncodedTexts(np.repeat(np.arange(len(lengths), dtype=np.int32) + 1, lengths), offsets)


@given(LENGTHS, st.integers(1, 9), st.booleans(), st.booleans(), st.integers(0, 3))
def test_every_text_once(lengths: list[int], size: int, shuffle: bool, bucket: bool, epoch: int) -> None:
    targets = torch.arange(len(lengths)) * 10
    batches = Batches(encoded(lengths), targets, batch_size=size, shuffle=shuffle, bucket=bucket)
    found = list(batches.epoch(epoch))
    assert len(found) == len(batches)
    assert sorted(len(batch.rows) for batch in found)[1:] == [size] * (len(found) - 1)
    assert sorted(np.concatenate([batch.rows for batch in found]).tolist()) == list(range(len(lengths)))
    for batch in found:
        assert batch.ids.dtype == torch.int64
        assert batch.targets.tolist() == [row * 10 for row in batch.rows]
        assert batch.ids.shape[1] == max(1, *(lengths[row] for row in batch.rows), 1)
        for row, ids in zip(batch.rows.tolist(), batch.ids.tolist(), strict=True):
            assert ids == [row + 1] * lengths[row] + [0] * (len(ids) - lengths[row])


@given(LENGTHS, st.integers(1, 9), st.integers(0, 5))
def test_a_resumed_epoch_is_the_tail_of_the_whole(lengths: list[int], size: int, start: int) -> None:
    batches = Batches(encoded(lengths), batch_size=size, seed=3)
    whole = [batch.rows.tolist() for batch in batches.epoch(7)]
    again = Batches(encoded(lengths), batch_size=size, seed=3)
    assert [batch.rows.tolist() for batch in again.epoch(7, start)] == whole[start:]


def test_seed_and_epoch_decide_the_order() -> None:
    texts = encoded(list(range(50)) * 40)

    def order(seed: int, epoch: int) -> list[int]:
        return [row for batch in Batches(texts, batch_size=8, seed=seed).epoch(epoch) for row in batch.rows]

    assert order(1, 1) == order(1, 1)
    assert order(1, 1) != order(1, 2)
    assert order(1, 1) != order(2, 1)
    np.random.default_rng(0)  # no state that is shared is read or moved
    torch.manual_seed(1)
    assert order(1, 1) == order(1, 1)


def test_padding_is_small() -> None:
    lengths = np.random.default_rng(0).geometric(1 / 20, 5000).tolist()
    batches = list(Batches(encoded(lengths), batch_size=32).epoch(1))
    padded = sum(batch.ids.numel() for batch in batches)
    assert 1 - sum(lengths) / padded < 0.1
    plain = sum(batch.ids.numel() for batch in Batches(encoded(lengths), batch_size=32, bucket=False).epoch(1))
    assert 1 - sum(lengths) / plain > 0.5


def test_batches_of_an_epoch_are_not_in_order_of_length() -> None:
    widths = [batch.ids.shape[1] for batch in Batches(encoded(list(range(1, 65))), batch_size=4).epoch(1)]
    assert widths != sorted(widths)


def test_unshuffled_order() -> None:
    texts = encoded([3, 1, 2])
    assert [batch.rows.tolist() for batch in Batches(texts, batch_size=2, shuffle=False).epoch(1)] == [[1, 2], [0]]
    plain = Batches(texts, batch_size=2, shuffle=False, bucket=False)
    assert [batch.rows.tolist() for batch in plain.epoch(1)] == [[0, 1], [2]]


def test_without_targets_and_with_a_table() -> None:
    assert next(Batches(encoded([1, 2]), batch_size=2).epoch(1)).targets.shape == (2, 0)
    table = torch.eye(2)
    batch = next(Batches(encoded([2, 1]), table, batch_size=2, shuffle=False).epoch(1))
    assert batch.targets.tolist() == [[0, 1], [1, 0]]


def test_no_texts() -> None:
    batches = Batches(encoded([]), batch_size=2)
    assert len(batches) == 0
    assert list(batches.epoch(1)) == []


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        Batches(encoded([1]), batch_size=0)
    with pytest.raises(ValueError, match="there are 1 texts, but 2 targets"):
        Batches(encoded([1]), torch.zeros(2), batch_size=1)
    with pytest.raises(ValueError, match="start must be at least 0"):
        next(Batches(encoded([1]), batch_size=1).epoch(1, -1))


@given(LENGTHS, st.data())
def test_taking_and_limiting_texts(lengths: list[int], data: st.DataObject) -> None:
    texts = encoded(lengths)
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1)))
    taken = texts.take(rows)
    assert [taken.row(at).tolist() for at in range(len(rows))] == [texts.row(row).tolist() for row in rows]
    limited = texts.limited(5)
    assert limited.lengths.tolist() == [min(5, length) for length in lengths]
    assert limited.cut == sum(length > 5 for length in lengths)
    assert [limited.row(at).tolist() for at in range(len(lengths))] == [
        texts.row(at)[:5].tolist() for at in range(len(lengths))
    ]


def test_suggested_length_keeps_its_share_whole() -> None:
    assert suggest_max_length(list(range(1, 101))) == 95
    assert suggest_max_length([3, 3, 3]) == 16
    assert suggest_max_length([], lowest=7) == 7
    assert suggest_max_length([9999]) == 512
    with pytest.raises(ValueError, match="highest must be at least 16"):
        suggest_max_length([1], highest=3)
