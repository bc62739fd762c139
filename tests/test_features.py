"""From token ids to children: every layer against the reference, and what padding must not do."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capsroute.capsules.compression import make_compression
from capsroute.capsules.convolution import ConvolutionalCapsules
from capsroute.capsules.primary import PrimaryCapsules
from capsroute.capsules.scales import largest_rms
from capsroute.capsules.votes import make_votes
from capsroute.encoders.base import PADDING
from capsroute.encoders.ngram import NgramEncoder
from capsroute.encoders.windows import window_count, window_mask
from capsroute.routing import make_routing
from tests import reference as ref

FEATURES, KINDS, DIM = 6, 3, 4


def encoder(columns=((3,),), stride: int = 2) -> NgramEncoder:
    made = NgramEncoder(vocabulary=30, word_dim=5, columns=columns, filters=FEATURES, stride=stride).double()
    with torch.no_grad():
        for convolution in made.convolutions.values():
            convolution.bias.normal_(std=0.1)
    return made


def primary() -> PrimaryCapsules:
    made = PrimaryCapsules(features=FEATURES, kinds=KINDS, dim=DIM).double()
    with torch.no_grad():
        made.bias.normal_(std=0.1)
    return made


def texts(*lengths: int, longest: int | None = None) -> torch.Tensor:
    ids = torch.zeros(len(lengths), longest or max(*lengths, 1), dtype=torch.int64)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(1, 30, (length,))
    return ids


def array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy()


@given(items=st.integers(1, 40), width=st.integers(1, 7), stride=st.integers(1, 4))
def test_windows_read_every_item_and_no_more(items: int, width: int, stride: int) -> None:
    stride = min(stride, width)
    count = window_count(items, width, stride)
    read = {place for t in range(count) for place in range(t * stride, t * stride + width)}
    assert set(range(items)) <= read
    last_start = (count - 1) * stride
    assert last_start < items, "the last window starts at an item"
    assert count == 1 or last_start - stride + width < items, "the windows before it left something unread"
    if items >= width and (items - width) % stride == 0:
        assert count == (items - width) // stride + 1, "a valid convolution where it fits"


@given(length=st.integers(0, 12), padding=st.integers(0, 12), width=st.integers(1, 5), stride=st.integers(1, 3))
def test_windows_are_counted_by_the_text_alone(length: int, padding: int, width: int, stride: int) -> None:
    stride = min(stride, width)
    mask = torch.arange(max(length + padding, 1))[None] < length
    expected = window_count(length, width, stride) if length else 0
    assert int(window_mask(mask, width, stride).sum()) == expected


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [1, 2, 3, 6, 7, 11])
def test_ngrams_equal_the_reference(width: int, stride: int, length: int) -> None:
    stride = min(stride, width)
    made = encoder(((width,),), stride)
    ids = texts(length, longest=12)
    (features,) = made(ids)
    (convolution,) = made.convolutions.values()
    words = array(made.words.weight)[array(ids[0, :length])]
    expected = ref.convolve(words, array(convolution.weight).transpose(0, 2, 1), array(convolution.bias), stride)
    assert int(features.mask.sum()) == len(expected) == made.positions(length)
    np.testing.assert_allclose(array(features.values[0][features.mask[0]]), expected, atol=1e-12)
    assert not features.values[0][~features.mask[0]].any()


def test_a_word_is_seen_at_its_own_positions_only() -> None:
    """PEERS: a public "n-gram convolution" slides over the dimensions of the embedding instead."""
    made = encoder()
    ids = texts(11)
    changed = ids.clone()
    changed[0, 6] = ids[0, 6] % 29 + 1
    (before,), (after,) = made(ids), made(changed)
    moved = (before.values - after.values).abs().amax(dim=2)[0] > 0
    sees = (before.spans[:, 0] <= 6) & (before.spans[:, 1] > 6)
    assert torch.equal(moved, sees)
    assert sees.any()


@pytest.mark.parametrize("columns", [((3,),), ((2, 3),), ((3,), (4, 5))])
@given(length=st.integers(0, 9), padding=st.integers(0, 7))
def test_padding_makes_no_features(columns, length: int, padding: int) -> None:
    torch.manual_seed(length)
    made = encoder(columns)
    ids = texts(length)
    longer = torch.nn.functional.pad(ids, (0, padding))
    for short, long in zip(made(ids), made(longer), strict=True):
        assert torch.allclose(short.values[short.mask], long.values[long.mask], atol=1e-14)


def test_the_padding_word_is_zero_and_stays_so() -> None:
    made = encoder()
    assert not made.words.weight[PADDING].any()
    sum(features.values.sum() for features in made(texts(1, 5))).backward()
    assert not made.words.weight.grad[PADDING].any()


def test_primary_capsules_equal_the_reference() -> None:
    layer = primary()
    features = torch.randn(2, 7, FEATURES, dtype=torch.float64)
    mask = torch.arange(7)[None] < torch.tensor([[7], [4]])
    capsules, _ = layer(features, mask)
    weight, bias = array(layer.weight).reshape(KINDS, DIM, FEATURES), array(layer.bias).reshape(KINDS, DIM)
    for row in range(2):
        np.testing.assert_allclose(
            array(capsules[row])[array(mask[row])],
            ref.primary(array(features[row]), weight, bias)[array(mask[row])],
            atol=1e-12,
        )
    assert not capsules[1, 4:].any()


@pytest.mark.parametrize("kind", ["positional", "attended", "pooled", "none"])
@pytest.mark.parametrize("length", [1, 4, 6, 9])
def test_compression_equals_the_reference(kind: str, length: int) -> None:
    """6 positions have weights of their own: 9 are more than that."""
    layer = primary()
    children = None if kind == "none" else 5
    compression = make_compression(kind, children=children, positions=6, kinds=KINDS, features=FEATURES).double()
    features = torch.randn(1, 11, FEATURES, dtype=torch.float64)
    mask = torch.arange(11)[None] < length
    made, there = compression(features, mask, layer)
    g = array(features[0, :length])
    weight, bias = array(layer.weight).reshape(KINDS, DIM, FEATURES), array(layer.bias).reshape(KINDS, DIM)
    capsules = ref.primary(g, weight, bias)
    weights = {name: array(value) for name, value in compression.named_parameters()}
    match kind:
        case "positional":
            expected = ref.positional(capsules, weights["weight"])
        case "attended":
            expected = ref.attended(g, capsules, weights["queries"], weights["mix"])
        case "pooled":
            scale = largest_rms(torch.tensor(length)).item()  # against quadrature in test_scales.py
            expected = ref.pooled(g, weight, bias, weights["mix"], scale)
        case _:
            expected = capsules.reshape(-1, DIM)
    np.testing.assert_allclose(array(made[there]), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["positional", "attended", "pooled", "none"])
def test_a_text_without_words_has_no_children(kind: str) -> None:
    children = None if kind == "none" else 5
    compression = make_compression(kind, children=children, positions=6, kinds=KINDS, features=FEATURES).double()
    features = torch.randn(2, 4, FEATURES, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False, False], [False, False, False, False]])
    made, there = compression(features, mask, primary())
    assert there[0].any()
    assert not there[1].any()
    made.sum().backward()
    assert torch.isfinite(made).all()
    assert torch.isfinite(features.grad).all()


@pytest.mark.parametrize("positions", [1, 2, 3, 7])
def test_convolutional_capsules_equal_the_reference(positions: int) -> None:
    layer = primary()
    vote = make_votes("shared", children=1, parents=2, dim=DIM)
    with torch.no_grad():
        vote.bias.normal_()
    routing = make_routing("leaky", children=None, parents=2, dim=DIM, iterations=3)
    stacked = ConvolutionalCapsules(layer, vote, routing, kinds=2, width=3).double()
    features = torch.randn(1, 9, FEATURES, dtype=torch.float64)
    mask = torch.arange(9)[None] < positions
    capsules, real = stacked(features, mask)
    below = ref.primary(
        array(features[0, :positions]),
        array(layer.weight).reshape(KINDS, DIM, FEATURES),
        array(layer.bias).reshape(KINDS, DIM),
    )
    expected = ref.convolutional_capsules(below, array(vote.weight), array(vote.bias), 3, 3)
    np.testing.assert_allclose(array(capsules[real]), expected, atol=1e-12)
    assert not capsules[~real].any()


def test_the_capsules_that_are_routed_are_the_ones_that_were_squashed() -> None:
    """PEERS: a view without a permute routes vectors cut across capsules, of lengths above 1."""
    compression = make_compression("none", children=None, positions=6, kinds=KINDS, features=FEATURES)
    children, _ = compression(torch.randn(2, 6, FEATURES) * 10, torch.ones(2, 6, dtype=torch.bool), primary().float())
    assert (children.norm(dim=2) < 1).all()


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown compression 'pool'; did you mean 'pooled'"):
        make_compression("pool", children=5, positions=6, kinds=3, features=6)
    with pytest.raises(ValueError, match="children=None does not go with compression 'pooled'"):
        make_compression("pooled", children=None, positions=6, kinds=3, features=6)
    with pytest.raises(ValueError, match="columns must name at least one n-gram width each"):
        encoder(((3,), ()))
    with pytest.raises(ValueError, match="an n-gram width must be at least 2, but is 1"):
        encoder(((1,),), stride=2)
