"""Annotations are checked in the test run: a checker that lets everything pass would go unnoticed."""

import pytest
import torch
from jaxtyping import TypeCheckError

from capsroute.routing.base import agreement
from capsroute.training.losses import make_loss


def test_axes_that_contradict_each_other_are_found() -> None:
    votes = torch.ones(2, 5, 3, 4)
    assert agreement(votes, torch.ones(2, 3, 4)).shape == (2, 5, 3)
    with pytest.raises(TypeCheckError, match="parents"):
        agreement(votes, torch.ones(2, 1, 4))  # PyTorch itself would broadcast it


def test_wrong_types_are_found() -> None:
    with pytest.raises(TypeCheckError, match="votes"):
        agreement(torch.ones(2, 5, 3, 4, dtype=torch.int64), torch.ones(2, 3, 4))
    with pytest.raises(TypeCheckError, match="name_or_instance"):
        make_loss(3)
