"""How weights move: Adam for matrices, a row-sparse Adam for words, one gradient norm, one learning rate.

    m <- b1 m + (1 - b1) g        v <- b2 v + (1 - b2) g^2
    w <- w - rate * (m / (1 - b1^n)) / (sqrt(v / (1 - b2^n)) + e)

(Kingma and Ba 2015, arXiv 1412.6980; weight decay decoupled as in Loshchilov and Hutter 2019, arXiv 1711.05101.)
A word that is in no text of the batch keeps its vector, its m, its v and its count n, so a step costs the same
however large the vocabulary is, and a rare word's first step is as long as a frequent one's was. Where every word is
in every batch this is Adam exactly.
"""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from capsroute.checks import above
from capsroute.training.config import TrainingConfig

BETAS = (0.9, 0.999)
EPSILON = 1e-8


def learning_rate_at(step: int, *, steps: int, config: TrainingConfig) -> float:
    """The learning rate of a step (from 0) in a run of so many: a pure function, so there is no state to save."""
    warm_up = round(config.warm_up * steps)
    if step < warm_up:
        return config.learning_rate * (step + 1) / (warm_up + 1)
    if config.decay == "constant":
        return config.learning_rate
    return config.learning_rate * (steps - step) / (steps - warm_up)


class RowAdam:
    """Adam for the rows of one matrix that the gradient, a sparse one, names."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.state = {
            "m": torch.zeros_like(weight),
            "v": torch.zeros_like(weight),
            "count": torch.zeros(len(weight), device=weight.device),
        }

    @torch.no_grad()
    def step(self, rows: Tensor, gradient: Tensor, *, learning_rate: float) -> None:
        """Move the rows, each named once."""
        beta1, beta2 = BETAS
        count = self._take("count", rows).add_(1)
        m = self._take("m", rows).lerp_(gradient, 1 - beta1)
        v = self._take("v", rows).mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        for name, value in (("count", count), ("m", m), ("v", v)):
            self.state[name].index_copy_(0, rows, value)
        exact = count[:, None].double()  # 1 - 0.999 has four digits in float32
        m.div_((1 - beta1**exact).to(m.dtype))
        v.div_((1 - beta2**exact).to(v.dtype)).sqrt_().add_(EPSILON)
        self.weight.index_add_(0, rows, m.div_(v), alpha=-learning_rate)

    def _take(self, name: str, rows: Tensor) -> Tensor:
        return self.state[name].index_select(0, rows)


class Optimizer:
    """All weights of a network, moved together.

        loss.backward()
        norm = optimizer.gradient_norm()
        optimizer.step(learning_rate, norm=float(norm))

    Args:
        weight_decay: of matrices and larger; never of biases, single numbers and the rows of embeddings.
        clip: largest norm of the gradient; a longer one is shortened to it. None: as it is.
    """

    def __init__(self, network: nn.Module, *, weight_decay: float, clip: float | None) -> None:
        if clip is not None:
            above("clip", clip, 0)
        self.clip = clip
        self.weights = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
        if not self.weights:
            raise ValueError("the network has no weights to train: all are frozen (requires_grad is False).")
        by_row = {id(module.weight) for module in _embeddings(network)}
        self.rows = {name: RowAdam(weight) for name, weight in self.weights.items() if id(weight) in by_row}
        dense = [name for name in self.weights if name not in self.rows]
        matrices = [name for name in dense if self.weights[name].ndim >= 2]
        others = [name for name in dense if self.weights[name].ndim < 2]
        self.dense_names = matrices + others
        self.dense = torch.optim.AdamW(
            [
                {"params": [self.weights[name] for name in matrices], "weight_decay": weight_decay},
                {"params": [self.weights[name] for name in others], "weight_decay": 0.0},
            ],
            betas=BETAS,
            eps=EPSILON,
            fused=all(self.weights[name].device.type in ("cpu", "cuda") for name in dense),
        )

    def zero_grad(self) -> None:
        """Forget the gradient."""
        for weight in self.weights.values():
            weight.grad = None

    @torch.no_grad()
    def gradient_norm(self) -> Tensor:
        """The norm of the whole gradient. A word's gradients from several places are added up first."""
        norms = [torch.zeros(())]
        for name, weight in self.weights.items():
            if weight.grad is None:
                continue
            if name in self.rows:
                # Dense where the words are also read otherwise than as an embedding.
                sparse = weight.grad if weight.grad.is_sparse else weight.grad.to_sparse(1)
                weight.grad = sparse.coalesce()
                norms.append(_norm(weight.grad.values()))
            else:
                norms.append(_norm(weight.grad))
        return _norm(torch.stack([norm.to(norms[-1]) for norm in norms]))

    @torch.no_grad()
    def step(self, learning_rate: float, *, norm: float) -> None:
        """Move all weights that have a gradient. `norm` is what `gradient_norm` gave for it."""
        scale = self.clip / norm if self.clip is not None and norm > self.clip else None
        for name, weight in self.weights.items():
            if weight.grad is None:
                continue
            values = weight.grad.values() if name in self.rows else weight.grad
            if scale is not None:
                values.mul_(scale)
            if name in self.rows:
                self.rows[name].step(weight.grad.indices()[0], values, learning_rate=learning_rate)
        for group in self.dense.param_groups:
            group["lr"] = learning_rate
        self.dense.step()  # pyright: ignore[reportUnknownMemberType]

    def tensors(self) -> dict[str, Tensor]:
        """The state, named `weight/part`."""
        found: dict[str, Tensor] = {}
        for name, weight in self.weights.items():
            state = self.rows[name].state if name in self.rows else self.dense.state[weight]
            found |= {f"{name}/{part}": tensor for part, tensor in state.items()}
        return found

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `tensors` gave. A weight that never had a gradient has no state."""
        dense: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            name, part = key.rsplit("/", 1)
            if name in self.rows:
                self.rows[name].state[part].copy_(tensor)
            else:
                dense.setdefault(self.dense_names.index(name), {})[part] = tensor
        self.dense.load_state_dict(self.dense.state_dict() | {"state": dense})


@contextmanager
def sparse_gradients(network: nn.Module) -> Generator[None, None, None]:
    """Let embeddings give gradients of the rows that were read, instead of whole matrices of mostly zeros."""
    changed = [module for module in _embeddings(network) if not module.sparse]
    for module in changed:
        module.sparse = True
    try:
        yield
    finally:
        for module in changed:
            module.sparse = False


def _embeddings(network: nn.Module) -> list[nn.Embedding]:
    """Those whose gradient can be sparse."""
    modules = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    return [m for m in modules if m.weight.requires_grad and m.max_norm is None and not m.scale_grad_by_freq]


def _norm(tensor: Tensor) -> Tensor:
    return torch.linalg.vector_norm(tensor)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
