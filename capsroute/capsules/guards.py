"""What layers refuse beside wrong shapes: sizes that are no whole numbers, switches that are neither on nor off,
tensors of another type or precision than the weights that would read them.

They are asked where a user enters: constructors and `forward`. Annotations are not checked when a user runs.
"""

from math import isfinite
from numbers import Integral, Real

import torch
from torch import Tensor, nn

from capsroute.checks import at_least


def whole(what: str, value: int, minimum: int) -> None:
    """Refuse what is no whole number, and one under its minimum."""
    given: object = value
    if not isinstance(given, Integral) or given is True:
        raise ValueError(f"{what} must be a whole number of at least {minimum}, but is {value!r}.")
    at_least(what, value, minimum)


def number(what: str, value: float) -> None:
    """Refuse NaN, infinity, and what is no number."""
    given: object = value
    if not isinstance(given, Real) or given is True or given is False or not isfinite(given):
        raise ValueError(f"{what} must be a finite number, but is {value!r}.")


def yes_or_no(what: str, value: object) -> None:
    """Refuse all but True and False: the word "False" would count as true."""
    if not isinstance(value, bool):
        raise ValueError(f"{what} must be True or False, but is {value!r}.")


def is_a(what: str, value: object, kind: type) -> None:
    """Refuse another type: a NumPy array for a tensor, a dict for a config."""
    if not isinstance(value, kind):
        raise ValueError(f"{what} must be a {kind.__name__}, but is a {type(value).__name__}.")


def has_dtype_of(what: str, tensor: Tensor, layer: nn.Module) -> None:
    """Refuse numbers that are not floating point, or not of the precision of the layer's weights."""
    if not tensor.is_floating_point():
        raise ValueError(f"{what} must be floating point, but have the dtype {tensor.dtype}.")
    weight = next(layer.parameters(), None)
    if weight is not None:
        same_dtype(what, tensor, weight.dtype, f"the weights of {type(layer).__name__}")


def same_dtype(what: str, tensor: Tensor, dtype: torch.dtype, whose: str) -> None:
    """Refuse numbers in another precision, but where autocast brings all to one by itself."""
    if tensor.dtype != dtype and not torch.is_autocast_enabled(tensor.device.type):
        raise ValueError(f"{what} must have the dtype of {whose}, {dtype}, but have {tensor.dtype}.")


def may_look(tensor: Tensor) -> bool:
    """Whether its numbers may be looked at: on an accelerator a look would stall the queue, in a compiled or
    exported graph it cannot be taken."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()
