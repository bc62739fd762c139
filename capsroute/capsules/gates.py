"""Gates: the numbers that a layer computes from its input to multiply that same input by.

Squash factors and attention weights are gates. With the gates held at the values of a forward pass everything below
the routing is linear in the words, so that a class capsule is a sum of what each word sent to it. `held_gates` holds
them: values stay the same, gradients flow through what is multiplied and not through what multiplies.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

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
    return values.detach() if _held.get() else values
