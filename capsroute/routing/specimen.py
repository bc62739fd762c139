"""What the contract tries routings on: small documents, and votes whose weights can be cut."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from capsroute.routing.base import Routing

BATCH, CHILDREN, PARENTS, DIM = 3, 5, 4, 6


@dataclass(frozen=True)
class Subject:
    """A routing under check: its class and the options it is made with."""

    routing: type[Routing]
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def make(
        self,
        *,
        children: int = CHILDREN,
        parents: int = PARENTS,
        dim: int = DIM,
        iterations: int = 3,
        dtype: torch.dtype = torch.float64,
    ) -> Routing:
        """The routing, with the same weights at every call."""
        with torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
            torch.manual_seed(1)  # pyright: ignore[reportUnknownMemberType]
            made = self.routing(children=children, parents=parents, dim=dim, iterations=iterations, **self.options)
        return made.to(dtype)


class MatrixVote(torch.nn.Module):
    """û_ij = W_ij u_i + b_ij, with weights that can be cut and put in another order."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight = weight
        self.bias = bias

    def forward(self, children: Tensor) -> Tensor:
        return torch.einsum("bik,ijdk->bijd", children, self.weight) + self.bias

    def take(self, children: Tensor | slice, parents: Tensor | slice = slice(None)) -> "MatrixVote":
        """The votes of some children for some parents."""
        return MatrixVote(self.weight[children][:, parents], self.bias[children][:, parents])


def example(
    *,
    batch: int = BATCH,
    children: int = CHILDREN,
    parents: int = PARENTS,
    dim: int = DIM,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
) -> tuple[Tensor, MatrixVote]:
    """Children and votes to try a routing on: always the same numbers for the same sizes."""
    generator = torch.Generator().manual_seed(batch + 10 * children + 100 * parents + 1000 * dim)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    u = draw(batch, children, dim) * scale
    vote = MatrixVote(draw(children, parents, dim, dim) / dim**0.5, 0.1 * draw(children, parents, dim) * scale)
    return u.to(dtype), MatrixVote(vote.weight.to(dtype), vote.bias.to(dtype))


def some_masked() -> Tensor:
    """A mask for an `example`: nothing hidden, a few children hidden, all but one hidden."""
    return torch.tensor(
        [[True, True, True, True, True], [True, False, True, True, False], [False, False, True, False, False]]
    )


@torch.no_grad()
def stir(routing: Routing) -> None:
    """Move every weight, each by another number."""
    for parameter in routing.parameters():
        parameter.add_(torch.linspace(-0.3, 0.4, parameter.numel(), dtype=parameter.dtype).view_as(parameter))
