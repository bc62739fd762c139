"""The whole network: what must not change a prediction, what it returns, and a golden one."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from capsroute.baselines import BagOfNgrams, TextCnn
from capsroute.capsules.squash import length
from capsroute.model import CapsuleNetwork, ConvolutionConfig, NetworkConfig
from capsroute.presets import PRESETS, capsule_a, capsule_b, paper
from capsroute.routing import ROUTINGS

GOLDEN = Path(__file__).parent / "golden"
SMALL: dict[str, Any] = {
    "vocabulary": 40,
    "classes": 3,
    "max_length": 12,
    "word_dim": 6,
    "filters": 8,
    "kinds": 4,
    "dim": 8,
    "children": 5,
}
SHAPES: dict[str, dict[str, Any]] = {
    "paper": {},
    "attended": {"compression": "attended", "columns": ((2, 3),)},
    "pooled": {"compression": "pooled", "columns": ((2, 3, 4),)},
    "columns": {"columns": ((3,), (4,)), "orphan": True},
    "capsule_b": {
        "columns": ((3,), (4,)),
        "convolution": ConvolutionConfig(kinds=3),
        "compression": "none",
        "children": None,
        "votes": "shared",
        "orphan": True,
        "routing": "leaky",
    },
    "low_rank": {"votes": "low_rank", "vote_rank": 2},
}


def network(seed: int = 0, **changes: Any) -> CapsuleNetwork:
    torch.manual_seed(seed)
    return CapsuleNetwork(NetworkConfig(**{**SMALL, **changes})).double().eval()


def some_texts(*lengths: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.zeros(len(lengths), max(*lengths, 1), dtype=torch.int64)
    for row, length_ in enumerate(lengths):
        ids[row, :length_] = torch.randint(1, SMALL["vocabulary"], (length_,), generator=generator)
    return ids


def every_network() -> list[Any]:
    shapes = [pytest.param(changes, id=name) for name, changes in SHAPES.items()]
    routings = [pytest.param({"routing": name}, id=name) for name in ROUTINGS]
    return shapes + routings


@pytest.mark.parametrize("changes", every_network())
def test_padding_batch_mates_and_order_change_nothing(changes: dict[str, Any]) -> None:
    """Of empty texts, texts shorter than an n-gram, and texts longer than planned for."""
    made = network(**changes)
    ids = some_texts(0, 1, 2, 3, 7, 12, 20)
    together = made(ids).scores
    assert torch.isfinite(together).all()
    assert not together[0].any(), "a text without words scores zero"
    assert torch.allclose(made(torch.nn.functional.pad(ids, (0, 9))).scores, together, atol=1e-12)
    assert torch.allclose(made(ids.flip(0)).scores, together.flip(0), atol=1e-12)
    for row, text in enumerate(ids):
        alone = text[text != 0][None]
        assert torch.allclose(made(alone).scores[0], together[row], atol=1e-12), f"text {row}"


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(0, 15), min_size=1, max_size=5),
    padding=st.integers(0, 6),
    shape=st.sampled_from(sorted(SHAPES)),
    seed=st.integers(0, 99),
)
def test_padding_never_changes_a_prediction(lengths: list[int], padding: int, shape: str, seed: int) -> None:
    made = network(**SHAPES[shape])
    ids = some_texts(*lengths, 1, seed=seed)
    longer = torch.nn.functional.pad(ids, (0, padding))
    assert torch.allclose(made(longer).scores, made(ids).scores, atol=1e-12)


@pytest.mark.parametrize("changes", every_network())
def test_the_number_of_threads_changes_nothing(changes: dict[str, Any]) -> None:
    made = network(**changes)
    ids = some_texts(*([9] * 16))
    one = made(ids).scores
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert torch.allclose(made(ids).scores, one, atol=1e-12)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("changes", every_network())
def test_returns_scores_and_all_that_led_to_them(changes: dict[str, Any]) -> None:
    made = network(**changes)
    output = made(some_texts(7, 12))
    config = made.config
    assert output.scores.shape == (2, config.classes)
    assert output.activation.shape == (2, config.parents)
    assert torch.equal(output.scores, output.activation[:, : config.classes])
    assert output.parents.shape == (2, config.parents, config.dim)
    assert len(output.columns) == len(config.columns)
    for column in output.columns:
        routing = made.columns[0].routing
        routed = routing(column.children.values, made.columns[0].vote, column.children.mask)
        if column is output.columns[0]:
            assert torch.equal(routed.parents, column.routed.parents)
        assert column.features.spans.shape == (column.features.values.shape[1], 2)
    if ROUTINGS[config.routing].activation_is_length:
        assert torch.allclose(output.activation, length(output.parents))
    mean = torch.stack([column.routed.parents for column in output.columns]).mean(0)
    assert torch.allclose(output.parents, mean)


def test_the_papers_network_has_the_papers_sizes() -> None:
    config = paper(vocabulary=1000, classes=4)
    made = CapsuleNetwork(config)
    sizes = {name: sum(p.numel() for p in part.parameters()) for name, part in made.columns[0].named_children()}
    assert made.encoder.words.weight.shape == (1000, 300)
    assert sum(p.numel() for p in made.encoder.convolutions.parameters()) == 64 * (3 * 300 + 1)
    assert sizes == {
        "primary": 64 * 64 * 65,
        "compression": 50 * 64 * 50,  # 100 words are 50 positions: 49 full trigrams and one for the last word
        "vote": 50 * 4 * 64 * 65,
        "routing": 64 * 66,
    }


@pytest.mark.parametrize(
    ("routing", "parameters"),
    [
        ("graph", 64 * 66),
        ("dynamic", 0),
        ("leaky", 0),
        ("em", 2 * 4),
        ("kde", 0),
        ("adaptive_kde", 0),
        ("kmeans", 0),
        ("gcn", 0),
        ("transformer", 8 * 64**2 + 2 * 64 * 256 + 13 * 64 + 256 + 4 * 64),
        ("max", 0),
        ("mean", 0),
        ("sum", 0),
    ],
)
def test_parameters_of_each_routing_are_as_documented(routing: str, parameters: int) -> None:
    made = ROUTINGS[routing](children=50, parents=4, dim=64, iterations=3)
    assert sum(parameter.numel() for parameter in made.parameters()) == parameters


def test_capsule_a_and_b_are_what_zhao_describes() -> None:
    a, b = (make(vocabulary=100, classes=4, max_length=20) for make in (capsule_a, capsule_b))
    assert (a.filters, a.kinds, a.dim, a.routing, a.orphan, a.parents) == (32, 32, 16, "leaky", True, 5)
    ids = torch.randint(1, 100, (2, 20))
    for config, columns in ((a, 1), (b, 3)):
        output = CapsuleNetwork(config)(ids)
        assert len(output.columns) == columns
        assert output.scores.shape == (2, 4)
        assert output.activation.shape == (2, 5)
    # 20 words, stride 2: 10 trigrams; windows of 3 positions with stride 1: 8; 16 capsules each
    assert CapsuleNetwork(a)(ids).columns[0].children.values.shape == (2, 8 * 16, 16)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_learns_a_simple_rule(name: str) -> None:
    """The word 7 means class 1: a few steps of Adam must find it."""
    torch.manual_seed(0)
    made = CapsuleNetwork(PRESETS[name](vocabulary=30, classes=2, max_length=8))
    from capsroute.training.losses import make_loss

    loss = make_loss("margin")
    optimiser = torch.optim.Adam(made.parameters(), lr=3e-3)
    for _ in range(25):
        ids = torch.randint(8, 30, (16, 8))
        targets = torch.randint(0, 2, (16,))
        ids[:, 3] = torch.where(targets == 1, 7, ids[:, 4])
        optimiser.zero_grad()
        loss(made(ids).activation, targets).backward()
        optimiser.step()
    assert (made(ids).scores.argmax(1) == targets).float().mean() > 0.9


@pytest.mark.parametrize("name", ["paper", "columns", "attended"])
def test_golden_network(name: str) -> None:
    """Yesterday's weights give yesterday's scores: tests/golden/make.py wrote both."""
    stored = load_file(GOLDEN / f"{name}.safetensors")
    made = network(**SHAPES[name]).float()
    made.load_state_dict({key[8:]: value for key, value in stored.items() if key.startswith("network.")})
    output = made(stored["ids"])
    assert torch.allclose(output.scores, stored["scores"], atol=1e-5)
    assert torch.allclose(output.columns[0].children.values, stored["children"], atol=1e-5)


@pytest.mark.parametrize("make", [TextCnn, BagOfNgrams], ids=lambda make: make.__name__)
def test_padding_and_batch_mates_change_no_baseline(make: Any) -> None:
    torch.manual_seed(0)
    made = make(vocabulary=40, classes=3, word_dim=6).double().eval()
    ids = some_texts(0, 1, 2, 3, 7, 12)
    together = made(ids)
    assert torch.allclose(together.scores.sum(1), torch.ones(6, dtype=torch.float64))
    assert torch.allclose(together.scores, together.activation.softmax(1))
    assert torch.allclose(made(torch.nn.functional.pad(ids, (0, 9))).scores, together.scores, atol=1e-12)
    for row, text in enumerate(ids):
        assert torch.allclose(made(text[text != 0][None]).scores[0], together.scores[row], atol=1e-12)


def test_a_bag_of_ngrams_is_a_mean_of_word_and_ngram_vectors() -> None:
    made = BagOfNgrams(vocabulary=40, classes=3, word_dim=6, ngrams=3, buckets=50)
    rows, there = made._grams(torch.tensor([[5, 6, 7, 5, 6, 0]]))
    words, bigrams, trigrams = rows[0, :6], rows[0, 6:11], rows[0, 11:15]
    assert words.tolist() == [5, 6, 7, 5, 6, 0]
    assert bigrams[0] == bigrams[3], "the same bigram has the same row"
    assert len({*bigrams[:3].tolist()}) == 3, "other bigrams have others, collisions aside"
    assert (rows[0, 6:][there[0, 6:]] >= 40).all(), "n-grams have rows behind the words"
    assert there[0].tolist() == [True] * 5 + [False] + [True] * 4 + [False] + [True] * 3 + [False]
    assert trigrams[3] == 0
    vectors = made.vectors.weight[rows[0][there[0]]]
    expected = made.output(vectors.mean(0))
    assert torch.allclose(made(torch.tensor([[5, 6, 7, 5, 6, 0]])).activation[0], expected, atol=1e-6)


def test_contradicting_settings_are_refused() -> None:
    cases = {
        "positional compression reads the positions of one n-gram width": {"columns": ((3, 4),)},
        "convolutional capsules read neighbours of one n-gram width": {
            "columns": ((3, 4),),
            "compression": "attended",
            "convolution": ConvolutionConfig(),
        },
        "pooled compression reads the n-grams": {"compression": "pooled", "convolution": ConvolutionConfig()},
        "attended compression reads the n-grams": {"compression": "attended", "convolution": ConvolutionConfig()},
        "children=5 does not go with compression 'none'": {"compression": "none", "votes": "shared"},
        "the number of children varies: votes must be 'shared'": {"compression": "none", "children": None},
        "classes must be at least 1": {"classes": 0},
        "unknown routing 'grpah'; did you mean 'graph'": {"routing": "grpah"},
        "unknown option of routing 'graph' 'distanse'; did you mean 'distance'": {
            "routing_options": {"distanse": "cosine"}
        },
        "vocabulary must be at least 2": {"vocabulary": 1},
        "em needs inverse_temperature": {
            "compression": "none",
            "children": None,
            "votes": "shared",
            "routing": "em",
        },
    }
    for sentence, changes in cases.items():
        with pytest.raises(ValueError, match=re.escape(sentence)):
            network(**changes)


def test_bad_ids_are_refused() -> None:
    made = network()
    with pytest.raises(ValueError, match=r"ids must have the shape \[batch, token\], but has \[4\]"):
        made(torch.tensor([1, 2, 3, 4]))
    with pytest.raises(ValueError, match="ids must be int64 or int32 token numbers, but have"):
        made(torch.ones(2, 3))
    assert made(torch.zeros(2, 0, dtype=torch.int64)).scores.tolist() == [[0.0] * 3] * 2
