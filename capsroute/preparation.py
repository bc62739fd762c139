"""What fitting needs before there is a network: which texts are learned from, their labels as numbers, the words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from capsroute.inputs import Given, Texts, labels_of, names_of, take, type_of, with_labels
from capsroute.plan import Plan
from capsroute.text.encoded import EncodedTexts, suggest_max_length
from capsroute.text.labels import Labels
from capsroute.text.tokens import Tokenizer
from capsroute.training.hold_out import hold_out
from capsroute.training.losses import LOSSES

SPECIAL = 2
"""Ids of a vocabulary without words: padding and the unknown word."""


@dataclass(frozen=True, eq=False)
class Part:
    """Texts and their targets."""

    texts: Texts
    targets: torch.Tensor


@dataclass(frozen=True, eq=False)
class Parts:
    """What is learned from, what the best epoch is chosen on, and the labels with their type."""

    learn: Part
    valid: Part | None
    labels: Labels
    kind: str


def make_parts(
    X: Given, y: Any, X_valid: Given | None, y_valid: Any, *, classes: Sequence[Any] | None, share: float, seed: int
) -> Parts:
    """The texts to learn from and those to choose on: given, or set aside.

    Args:
        classes: all labels that may come; None: those that are there.
    """
    _check_share(share)
    if X_valid is None and y_valid is not None:
        raise ValueError("y_valid was given without X_valid: give the texts that these labels belong to.")
    texts, given = with_labels(X, y)
    known = given if classes is None else labels_of(classes)
    labels = Labels.of(names_of(known))
    if classes is not None:
        labels = replace(labels, several=any(isinstance(label, list) for label in given))
    learn = Part(texts, labels.encode(names_of(given)))
    if X_valid is not None:
        other, other_given = with_labels(X_valid, y_valid)
        return Parts(learn, Part(other, labels.encode(names_of(other_given))), labels, type_of(known))
    if share == 0:
        return Parts(learn, None, labels, type_of(known))
    rows, aside = hold_out(learn.targets.numpy(), share=share, seed=seed)
    kept, valid = (Part(take(texts, part), learn.targets[part]) for part in (rows, aside))
    return Parts(kept, valid, labels, type_of(known))


def read_words(texts: Texts, plan: Plan) -> tuple[Tokenizer, EncodedTexts]:
    """The vocabulary, and the texts in its numbers up to the length that nearly all of them keep to."""
    tokenizer = Tokenizer.train(texts, plan.tokens)
    if len(tokenizer) == SPECIAL:
        often = plan.tokens.min_frequency
        raise ValueError(
            f"no word occurs {often} times or more in these texts: lower min_frequency, or mend the texts."
        )
    encoded = tokenizer.encode(texts)
    longest = suggest_max_length(encoded.lengths) if plan.max_length is None else plan.max_length
    return tokenizer.limited(longest), encoded.limited(longest)


def with_fitting_loss(plan: Plan, labels: Labels, *, chosen: bool) -> Plan:
    """The plan with a loss that can learn several labels a text, if there are such.

    Args:
        chosen: whether the loss is the user's own choice, which is not changed behind his back.
    """
    if not labels.several:
        return plan
    if plan.network != "capsule":
        raise ValueError(f"'{plan.network}' gives one label a text: for several use the network 'capsule'.")
    if LOSSES[plan.training.loss].several_labels:
        return plan
    if chosen:
        able = ", ".join(name for name, loss in LOSSES.items() if loss.several_labels)
        raise ValueError(f"the loss '{plan.training.loss}' takes one label a text: for several choose from {able}.")
    return replace(plan, training=replace(plan.training, loss="binary_cross_entropy", loss_options={}))


def say_cut(encoded: EncodedTexts, tokenizer: Tokenizer) -> str:
    """What is lost by the limit, in a sentence."""
    longest = tokenizer.config.max_length
    verb = "is longer and will be cut" if encoded.cut == 1 else "are longer and will be cut"
    return f"texts are read up to {longest} tokens: {encoded.cut or 'none'} of {len(encoded):,} {verb}"


def _check_share(share: Any) -> None:
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 <= share < 1:
        raise ValueError(f"validation must be a share of the texts, from 0 to less than 1, but is {share!r}.")
