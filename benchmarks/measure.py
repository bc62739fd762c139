"""Medians of interleaved rounds, peak memory, and the limits of the machine."""

import gc
import statistics
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Case = Callable[[], Any]


def interleaved(cases: Mapping[str, Case], *, rounds: int) -> dict[str, float]:
    """Median seconds of each case, after two rounds that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 2):
        for name, case in cases.items():
            started = time.perf_counter()
            case()
            if number >= 2:
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(of_case) for name, of_case in seconds.items()}


def peak_mib(case: Case) -> float:
    """Most memory that tensors made during the case held at one time."""
    gc.collect()
    with _Live() as live:
        case()
    return live.peak / 2**20


class _Live(TorchDispatchMode):
    """Counts the bytes of storages from the operation that makes them until they are freed.

    What an operation is first given was there before: weights and the states of an optimiser do not count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for storage in _storages((args, kwargs)):
            self._meet(storage, counts=False)
        out = func(*args, **(kwargs or {}))
        for storage in _storages(out):
            self._meet(storage, counts=True)
        return out

    def _meet(self, storage: Any, *, counts: bool) -> None:
        # One storage has many Python objects, and its address is used again when it is freed.
        place = storage._cdata
        if place in self.seen:
            return
        self.seen.add(place)
        size = storage.nbytes() if counts else 0
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._leave, place, size)

    def _leave(self, place: int, size: int) -> None:
        self.seen.discard(place)
        self.now -= size


def _storages(values: Any) -> Iterator[Any]:
    """What the tensors in any nest of values lie in; of a sparse one its indices and its numbers."""
    for tensor in tree_leaves(values):
        if isinstance(tensor, Tensor):
            dense = (tensor._indices(), tensor._values()) if tensor.is_sparse else (tensor,)
            yield from (part.untyped_storage() for part in dense)


def machine_limits(*, smoke: bool = False) -> dict[str, float]:
    """What the machine can do at most, with the threads in use: its matrix product and its copy."""
    size = 256 if smoke else 2048
    a, b, out = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
    source = torch.randn((1 if smoke else 64) * 2**18)  # 64 MiB: larger than any cache
    target = torch.empty_like(source)
    times = interleaved({"product": lambda: torch.mm(a, b, out=out), "copy": lambda: target.copy_(source)}, rounds=7)
    return {
        "product_gflops": 2 * size**3 / times["product"] / 1e9,
        "copy_gbytes": 2 * source.nbytes / times["copy"] / 1e9,
    }
