"""Gates: the numbers that a layer computes from its input to multiply that same input by.

Squash factors, attention weights, the graph and what a routing multiplies votes by are gates. With the gates held at
the values of a forward pass, and the same features firing, the network is linear in the words, and a class capsule is
a sum of what each word sent to it. `held_gates` holds them: values stay the same, gradients flow through what is
multiplied and not through what multiplies.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_held: ContextVar[bool] = ContextVar("held", default=False)


@contextmanager
def held_gates() -> Generator[None]:
    """Within it, gates are constants to the gradient."""
    token = _held.set(True)
    try:
        yield
    finally:
        _held.reset(token)


def gate(values: Tensor) -> Tensor:
    """Mark values as a gate."""
    return values.detach() if _held.get() and not torch.compiler.is_compiling() else values


def closed_forms(x: Tensor) -> bool:
    """Whether a closed-form gradient may stand for the recorded operations: held gates, compilers and autocast,
    which change what is done or what flows back, need them recorded."""
    if torch.compiler.is_compiling():
        return False
    return not _held.get() and not torch.is_autocast_enabled(x.device.type)
