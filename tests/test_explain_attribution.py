"""Exact credit: the parts add up, and each part is what an independent measurement says."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from capsroute.capsules import gates
from capsroute.capsules.squash import length, squash
from capsroute.explain import EXACT, Credit, attribute
from capsroute.model import CapsuleNetwork, ConvolutionConfig, NetworkConfig
from tests.variants import OPTIONS, label

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
LOOSE: dict[str, Any] = {"compression": "none", "children": None, "votes": "shared"}
CONVOLUTION: dict[str, Any] = {"convolution": ConvolutionConfig(kinds=3)}
SHAPES: dict[str, dict[str, Any]] = {
    "positional": {},
    "attended": {"compression": "attended", "columns": ((2, 3),)},
    "pooled": {"compression": "pooled", "columns": ((2, 3),), "votes": "shared"},
    "none": LOOSE,
    "positional_convolution": CONVOLUTION,
    "none_convolution": {**LOOSE, **CONVOLUTION},
    "columns": {"columns": ((3,), (4,)), "orphan": True},
    "pooled_columns": {"compression": "pooled", "columns": ((2, 3), (4,))},
    "columns_convolution": {"columns": ((3,), (4,)), "orphan": True, **LOOSE, **CONVOLUTION},
}
STEP = 1e-5
IDS = torch.tensor([[7, 12, 3, 30, 12, 1, 25, 8, 39]])


def network(**changes: Any) -> CapsuleNetwork:
    """A small network in double precision whose every weight, biases included, is something."""
    torch.manual_seed(3)
    made = CapsuleNetwork(NetworkConfig(**{**SMALL, **changes})).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
        made.encoder.words.weight[0] = 0
    return made


def off(credit: Credit) -> float:
    """The largest relative error of the sums."""
    sums = credit.tokens.sum(1) + credit.bias
    return float(((sums - credit.total).abs() / credit.total).max())


class GivenWords(nn.Module):
    """An embedding that answers with word vectors of the test's choice."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = vectors

    def forward(self, ids: Tensor) -> Tensor:
        assert ids.shape == self.vectors.shape[:2]
        return self.vectors


@contextmanager
def gates_replaced(monkeypatch: pytest.MonkeyPatch, gate: Any) -> Iterator[None]:
    original = gates.gate
    with monkeypatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("capsroute") and getattr(module, "gate", None) is original:
                patch.setattr(module, "gate", gate)
            if name.startswith("capsroute") and hasattr(module, "closed_forms"):  # those have their gates inside
                patch.setattr(module, "closed_forms", lambda _: False)  # pyright: ignore
        yield


def measured_parts(made: CapsuleNetwork, ids: Tensor, monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, Tensor]:
    """Parts of the scores by words and by biases, without a gradient.

    A first pass records every gate; later passes play them back, and scale one word, or all biases, a little. The
    network is linear between the kinks of ReLU, so that the difference is exact but for rounding.
    """
    seen: list[Tensor] = []
    with gates_replaced(monkeypatch, lambda values: seen.append(values) or values):
        output = made(ids)
    direction = output.parents / length(output.parents, keepdim=True)

    def along(vectors: Tensor) -> Tensor:
        played = iter(seen)
        encoder, words = made.encoder, made.encoder.words
        encoder.words = GivenWords(vectors)  # pyright: ignore
        try:
            with gates_replaced(monkeypatch, lambda values: next(played)):  # noqa: ARG005
                return (made(ids).parents * direction).sum(2)[0]
        finally:
            encoder.words = words

    step = STEP
    vectors = made.encoder.words(ids)
    before = along(vectors)
    words = []
    for token in range(ids.shape[1]):
        scaled = vectors.clone()
        scaled[0, token] *= 1 + step
        words.append((along(scaled) - before) / step)
    biases = [parameter for name, parameter in made.named_parameters() if name.endswith("bias")]
    for parameter in biases:
        parameter.mul_(1 + step)
    bias = (along(vectors) - before) / step
    for parameter in biases:
        parameter.div_(1 + step)
    classes = made.config.classes
    return torch.stack(words, dim=1)[:classes], bias[:classes]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("routing", EXACT)
def test_parts_add_up_and_are_what_a_measurement_says(
    routing: str, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = network(routing=routing, **SHAPES[shape])
    credit = attribute(made, IDS)
    assert credit.quantity == ("score" if len(made.columns) > 1 else "length_before_squash")
    assert off(credit) < 1e-10
    children = torch.cat([column.children for column in credit.columns], dim=1)
    assert torch.allclose(children.sum(1), credit.total, rtol=1e-10)

    with torch.no_grad():
        output = made(IDS)
        words, bias = measured_parts(made, IDS, monkeypatch)
    assert torch.allclose(credit.scores, output.scores[0], rtol=1e-12)
    # The measurement is of the score; before squash everything is larger by one factor.
    factor = (credit.total / output.scores[0])[:, None]
    scale = credit.tokens.abs().max()
    assert torch.allclose(words * factor, credit.tokens, atol=1e-8 * float(scale), rtol=1e-6)
    assert torch.allclose(bias * factor[:, 0], credit.bias, atol=1e-8 * float(scale), rtol=1e-6)


def readings() -> list[Any]:
    """Options by name, of the methods that have a decomposition."""
    plain = [v for v in OPTIONS if v[0] in EXACT and all(isinstance(x, str | float | bool) for x in v[1].values())]
    return [pytest.param(v, id=label(v)) for v in plain if "transformed" not in label(v)]


@pytest.mark.parametrize("variant", readings())
def test_parts_add_up_in_every_reading(variant: tuple[str, dict[str, Any]]) -> None:
    routing, options = variant
    made = network(routing=routing, routing_options=options)
    credit = attribute(made, IDS)
    assert off(credit) < 1e-10
    kind = getattr(made.columns[0].routing, "squash", "sabour")
    squashed = squash(credit.total[:, None], kind)[:, 0]
    assert torch.allclose(squashed, credit.scores, rtol=1e-10), "what is divided is what the score is made from"


def test_credit_by_hand() -> None:
    """Sum pooling of positional children, in plain loops."""
    made = network(routing="sum", compression="positional", columns=((3,),))
    with torch.no_grad():
        credit = attribute(made, IDS)
        weights = {name: value.numpy() for name, value in made.named_parameters()}
        output = made(IDS)
    x = weights["encoder.words.weight"][IDS[0].numpy()]
    kernel, kernel_bias = (weights[f"encoder.convolutions.column0_width3.{part}"] for part in ("weight", "bias"))
    read, read_bias = weights["columns.0.primary.weight"], weights["columns.0.primary.bias"]
    compress, vote = weights["columns.0.compression.weight"], weights["columns.0.vote.weight"]
    kinds, dim, classes = SMALL["kinds"], SMALL["dim"], SMALL["classes"]
    words, total = np.zeros((len(x), classes, dim)), np.zeros((classes, dim))
    for position in range(output.columns[0].features.values.shape[1]):
        window = [position * 2 + k for k in range(3) if position * 2 + k < len(x)]
        parts = {t: kernel[:, :, t - position * 2] @ x[t] for t in window}
        raw = sum(parts.values()) + kernel_bias
        fires = raw > 0
        capsules = (read @ (raw * fires) + read_bias).reshape(kinds, dim)
        factor = [np.linalg.norm(p) / (1 + np.linalg.norm(p) ** 2) for p in capsules]
        for kind in range(kinds):
            for child in range(SMALL["children"]):
                through = np.einsum("jdk,ke->jde", vote[child], np.eye(dim)) * compress[position, kind, child]
                total += through @ (factor[kind] * capsules[kind])
                for t in window:
                    part = (read @ (parts[t] * fires)).reshape(kinds, dim)[kind]
                    words[t] += through @ (factor[kind] * part)
    total += weights["columns.0.vote.bias"].sum(0)
    direction = total / np.linalg.norm(total, axis=1, keepdims=True)
    np.testing.assert_allclose(np.linalg.norm(total, axis=1), credit.total, rtol=1e-10)
    np.testing.assert_allclose(np.einsum("tjd,jd->jt", words, direction), credit.tokens, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_single_precision_is_exact_to_five_digits(shape: str) -> None:
    made = network(**SHAPES[shape]).float()
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        assert off(attribute(made, torch.randint(1, 40, (1, 12), generator=generator))) < 1e-5


def test_single_precision_at_the_papers_sizes() -> None:
    made = CapsuleNetwork(NetworkConfig(vocabulary=300, classes=4))
    assert off(attribute(made, torch.randint(1, 300, (1, 100)), readers=2)) < 1e-5


@pytest.mark.parametrize("shape", SHAPES)
def test_padding_gets_no_credit_and_changes_none(shape: str) -> None:
    made = network(**SHAPES[shape])
    alone = attribute(made, IDS)
    padded = attribute(made, torch.nn.functional.pad(IDS, (0, 7)))
    assert not padded.tokens[:, 9:].any()
    assert torch.allclose(padded.tokens[:, :9], alone.tokens, atol=1e-10)
    assert torch.allclose(padded.bias, alone.bias, atol=1e-10)
    for with_padding, without in zip(padded.columns, alone.columns, strict=True):
        places = without.reading.shape[0]
        if made.config.compression != "none":
            assert torch.allclose(with_padding.reading[:places, :9], without.reading, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("routing", EXACT)
def test_short_and_empty_texts(routing: str, shape: str) -> None:
    made = network(routing=routing, **SHAPES[shape])
    for ids in ([5], [5, 6]):
        credit = attribute(made, torch.tensor([ids]))
        assert off(credit) < 1e-10
        assert credit.tokens.shape == (3, len(ids))
    for ids in (torch.zeros(1, 0, dtype=torch.int64), torch.zeros(1, 4, dtype=torch.int64)):
        credit = attribute(made, ids)
        assert not any(part.any() for part in (credit.total, credit.tokens, credit.bias, credit.scores))
