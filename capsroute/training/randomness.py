"""The random numbers of a run: one seed for all of them, and their state, to go on from."""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor


def seed_everything(seed: int) -> None:
    """Seed torch on every device: all that capsroute draws comes from there, or from the seed itself (data order).

    Call it before a network is built. `train` calls it again, so that what it draws (dropout) depends on the seed
    alone, not on how much the building drew. A GPU may still add in another order each time, unless torch is told not
    to (torch.use_deterministic_algorithms).
    """
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The state of torch's generators: of the CPU and of the device that is trained on."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Go on from a state. One saved on another kind of device is used as far as it goes."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


@contextmanager
def draws_nothing(device: torch.device) -> Generator[None, None, None]:
    """Leave the random state as it was: what happens in between cannot change what comes after."""
    before = random_state(device)
    try:
        yield
    finally:
        set_random_state(before, device)
