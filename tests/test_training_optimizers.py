"""Weights move as Adam moves them, words only when they are read, and the clip sees the whole gradient."""

from contextlib import suppress
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from capsroute.training import TrainingConfig
from capsroute.training.optimizers import Optimizer, learning_rate_at, sparse_gradients
from tests.test_training_data import TinyNetwork, TinyOutput, tiny_network

EVERY_WORD = torch.arange(40).view(5, 8)


def steps(network: nn.Module, optimizer: Optimizer, ids: list[Tensor], *, rate: float = 0.01) -> list[float]:
    """Learn from batches; the norms of the gradients."""
    norms: list[float] = []
    with sparse_gradients(network):
        for batch in ids:
            optimizer.zero_grad()
            network(batch).activation.square().sum().backward()
            norms.append(float(optimizer.gradient_norm()))
            optimizer.step(rate, norm=norms[-1])
    return norms


def test_words_that_are_all_in_every_batch_move_as_by_adam() -> None:
    ours, theirs = tiny_network(dropout=0.0), tiny_network(dropout=0.0)
    steps(ours, Optimizer(ours, weight_decay=0.0, clip=None), [EVERY_WORD] * 30)
    adam = torch.optim.Adam(theirs.parameters(), lr=0.01)
    for _ in range(30):
        adam.zero_grad()
        theirs(EVERY_WORD).activation.square().sum().backward()
        adam.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


def test_words_that_are_not_read_stay_and_padding_always_does() -> None:
    network = tiny_network()
    before = network.words.weight.detach().clone()
    steps(network, Optimizer(network, weight_decay=0.1, clip=1.0), [torch.tensor([[3, 5, 0], [5, 0, 0]])] * 3)
    moved = (network.words.weight != before).any(dim=1)
    assert moved.nonzero().flatten().tolist() == [3, 5]


def test_a_rare_word_makes_the_same_first_step_as_the_others_did() -> None:
    network = tiny_network(dropout=0.0)
    optimizer = Optimizer(network, weight_decay=0.0, clip=None)
    steps(network, optimizer, [torch.tensor([[3, 4]])] * 50)
    before = network.words.weight[7].detach().clone()
    steps(network, optimizer, [torch.tensor([[3, 7]])], rate=0.01)
    torch.testing.assert_close((network.words.weight[7] - before).abs(), torch.full((6,), 0.01), rtol=1e-3, atol=0)


def test_the_gradient_of_words_has_a_row_for_each_word_read() -> None:
    network = tiny_network(words=100_000)
    optimizer = Optimizer(network, weight_decay=0.0, clip=None)
    steps(network, optimizer, [torch.tensor([[3, 5, 3, 0]])])
    assert network.words.weight.grad is not None
    assert network.words.weight.grad.indices().tolist() == [[3, 5]]


def test_weight_decay_is_for_matrices_alone() -> None:
    still, decayed = tiny_network(dropout=0.0), tiny_network(dropout=0.0)
    for network, decay in ((still, 0.0), (decayed, 0.5)):
        steps(network, Optimizer(network, weight_decay=decay, clip=None), [EVERY_WORD])
    assert torch.equal(still.words.weight, decayed.words.weight)
    assert torch.equal(still.output.bias, decayed.output.bias)
    initial = tiny_network(dropout=0.0).output.weight
    torch.testing.assert_close(
        still.output.weight - decayed.output.weight, 0.01 * 0.5 * initial, rtol=1e-3, atol=1e-7
    )


def test_the_norm_adds_up_the_gradients_of_a_word_first() -> None:
    ids = torch.tensor([[3, 3, 3, 5], [5, 3, 0, 9]])
    sparse, dense = tiny_network(dropout=0.0), tiny_network(dropout=0.0)
    (norm,) = steps(sparse, Optimizer(sparse, weight_decay=0.0, clip=None), [ids])
    dense(ids).activation.square().sum().backward()
    assert norm == pytest.approx(float(nn.utils.clip_grad_norm_(dense.parameters(), 1e9)), rel=1e-6)


def test_clipping_shortens_the_whole_gradient() -> None:
    ids = torch.tensor([[3, 3, 3, 5], [5, 3, 0, 9]])
    network, reference = tiny_network(dropout=0.0), tiny_network(dropout=0.0)
    (norm,) = steps(network, Optimizer(network, weight_decay=0.0, clip=0.01), [ids])
    assert norm > 0.01
    reference(ids).activation.square().sum().backward()
    nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
    assert network.words.weight.grad is not None
    torch.testing.assert_close(network.words.weight.grad.to_dense(), reference.words.weight.grad, rtol=1e-4, atol=0)
    torch.testing.assert_close(network.output.weight.grad, reference.output.weight.grad, rtol=1e-4, atol=0)


def test_a_short_gradient_is_not_clipped() -> None:
    ids = torch.tensor([[3, 5]])
    clipped, free = tiny_network(dropout=0.0), tiny_network(dropout=0.0)
    steps(clipped, Optimizer(clipped, weight_decay=0.0, clip=100.0), [ids] * 3)
    steps(free, Optimizer(free, weight_decay=0.0, clip=None), [ids] * 3)
    assert torch.equal(clipped.words.weight, free.words.weight)


class TiedNetwork(TinyNetwork):
    """Reads its word vectors a second time, as a matrix: their gradient is dense."""

    def forward(self, ids: Tensor) -> TinyOutput:
        output = super().forward(ids)
        return output._replace(activation=output.activation + self.words.weight[3].sum())


def test_words_that_are_read_as_a_matrix_too() -> None:
    torch.manual_seed(0)
    network = TiedNetwork()
    before = network.words.weight.detach().clone()
    steps(network, Optimizer(network, weight_decay=0.0, clip=1.0), [torch.tensor([[5, 0]])])
    assert (network.words.weight != before).any(dim=1).nonzero().flatten().tolist() == [3, 5]


def test_the_state_goes_on_where_it_was() -> None:
    batches = [torch.randint(1, 40, (4, 5)) for _ in range(10)]
    straight, stopped = tiny_network(dropout=0.0), tiny_network(dropout=0.0)
    steps(straight, Optimizer(straight, weight_decay=0.1, clip=1.0), batches)
    first = Optimizer(stopped, weight_decay=0.1, clip=1.0)
    steps(stopped, first, batches[:6])
    second = Optimizer(stopped, weight_decay=0.1, clip=1.0)
    second.load_tensors({name: tensor.clone() for name, tensor in first.tensors().items()})
    steps(stopped, second, batches[6:])
    for mine, other in zip(straight.parameters(), stopped.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_frozen_weights_stay_and_a_wholly_frozen_network_is_refused() -> None:
    network = tiny_network()
    network.words.requires_grad_(False)
    before = network.words.weight.clone()
    steps(network, Optimizer(network, weight_decay=0.0, clip=1.0), [EVERY_WORD])
    assert torch.equal(network.words.weight, before)
    network.requires_grad_(False)
    with pytest.raises(ValueError, match="no weights to train"):
        Optimizer(network, weight_decay=0.0, clip=None)


def test_embeddings_are_sparse_only_while_training() -> None:
    network = tiny_network()
    with suppress(KeyError), sparse_gradients(network):
        assert network.words.sparse
        raise KeyError
    assert not network.words.sparse


def test_the_learning_rate_rises_and_falls() -> None:
    config = TrainingConfig(learning_rate=1.0, warm_up=0.2, decay="linear")
    rates = [learning_rate_at(step, steps=10, config=config) for step in range(10)]
    assert rates == pytest.approx([1 / 3, 2 / 3, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


def test_the_learning_rate_of_the_paper_is_always_the_same() -> None:
    assert {learning_rate_at(step, steps=10, config=TrainingConfig.paper()) for step in range(10)} == {5e-5}


@pytest.mark.parametrize("warm_up", [0.0, 0.3, 1.0])
def test_the_learning_rate_is_positive_and_never_jumps(warm_up: float) -> None:
    config = TrainingConfig(learning_rate=1.0, warm_up=warm_up)
    rates = [learning_rate_at(step, steps=100, config=config) for step in range(100)]
    assert min(rates) > 0
    assert max(rates) <= 1
    assert max(abs(after - before) for before, after in pairwise(rates)) < 0.04
