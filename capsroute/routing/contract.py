"""What every routing promises, as checks that any routing can be put through, also one from elsewhere.

    check_routing(MyRouting)            all checks; an AssertionError says which promise is broken
    check_routing("graph", distance="cosine")

Each check is a function of a `Subject`: a way to make the routing in a given size.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from capsroute.capsules.squash import length
from capsroute.checks import look_up
from capsroute.routing import ROUTINGS, Routed, Routing
from capsroute.routing.specimen import BATCH, CHILDREN, DIM, PARENTS, MatrixVote, Subject, example, some_masked, stir


def has_the_promised_shapes(subject: Subject) -> None:
    """Every field has its shape and type; activation and coupling lie in [0, 1]."""
    u, vote = example()
    routed = subject.make()(u, vote)
    _same_shape("parents", routed.parents, (BATCH, PARENTS, DIM))
    _same_shape("activation", routed.activation, (BATCH, PARENTS))
    for name, shape in {
        "coupling": (BATCH, CHILDREN, PARENTS),
        "gain": (BATCH, CHILDREN, PARENTS),
        "relation": (BATCH, CHILDREN, CHILDREN),
        "voters": (BATCH, CHILDREN, DIM),
        "iterations": (BATCH,),
    }.items():
        tensor: Tensor | None = getattr(routed, name)
        if tensor is not None:
            _same_shape(name, tensor, shape)
    assert _within(routed.activation, 0, 1), "activation must lie in [0, 1]"
    assert routed.coupling is None or _within(routed.coupling, 0, 1 + 1e-9), "coupling must lie in [0, 1]"
    if routed.iterations is not None:
        assert _within(routed.iterations, 1, 3), "no more passes than the bound"


def works_at_the_smallest_sizes(subject: Subject) -> None:
    """One child, one parent, one dimension, one pass, one document; and seven passes."""
    sizes = {"batch": BATCH, "children": CHILDREN, "parents": PARENTS, "dim": DIM, "iterations": 3}
    cases = [{name: 1} for name in sizes] + [dict.fromkeys(sizes, 1), {"iterations": 7}]
    for case in cases:
        batch, children, parents, dim, iterations = {**sizes, **case}.values()
        u, vote = example(batch=batch, children=children, parents=parents, dim=dim)
        routed = subject.make(children=children, parents=parents, dim=dim, iterations=iterations)(u, vote)
        _same_shape("parents", routed.parents, (batch, parents, dim))
        assert _finite(routed), f"finite with {case}"


def is_finite_for_any_size_of_vote(subject: Subject) -> None:
    """Zero, tiny and huge votes give finite results and finite gradients, in single and double precision."""
    for dtype in (torch.float32, torch.float64):
        for scale in (0.0, 1e-30, 1e-6, 1e2, 1e4, 1e8):
            u, vote = example(scale=scale, dtype=dtype)
            u.requires_grad_()
            vote.weight.requires_grad_()
            routing = subject.make(dtype=dtype)
            routed = routing(u, vote)
            assert _finite(routed), f"finite with children of size {scale} in {dtype}"
            (routed.activation.sum() + routed.parents.sum()).backward()
            for tensor in (u, vote.weight, *routing.parameters()):
                assert tensor.grad is None or bool(torch.isfinite(tensor.grad).all()), (
                    f"finite gradients with children of size {scale} in {dtype}"
                )


def has_the_right_gradients(subject: Subject) -> None:
    """Gradients equal numerical ones, for the children, the votes and the routing's own weights."""
    routing = subject.make(children=4, parents=3, dim=3)
    stir(routing)  # off the zeros at the start, where a gradient may vanish
    u, vote = example(batch=2, children=4, parents=3, dim=3)
    names = [name for name, _ in routing.named_parameters()]
    inputs = [u, vote.weight, *(parameter.detach() for parameter in routing.parameters())]
    for tensor in inputs:
        tensor.requires_grad_()

    def outcome(u: Tensor, weight: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        arguments = (u, MatrixVote(weight, vote.bias))
        routed = torch.func.functional_call(routing, dict(zip(names, weights, strict=True)), arguments)
        return routed.parents, routed.activation

    right = torch.autograd.gradcheck(outcome, inputs, eps=1e-6, atol=1e-6, rtol=1e-4, raise_exception=False)
    assert right, "gradients equal numerical ones"


def couples_over_the_declared_axis(subject: Subject) -> None:
    """Couplings sum to 1 over `coupling_axis`, to less than 1 with a leak; a masked child has none."""
    u, vote = example()
    mask = some_masked()
    routed = subject.make()(u, vote, mask)
    axis = subject.routing.coupling_axis
    if routed.coupling is None:
        assert axis is None, f"coupling is None, but coupling_axis says {axis!r}"
        return
    assert not routed.coupling[~mask].any(), "a masked child has no coupling"
    if axis == "child":
        assert _close(routed.coupling.sum(1), torch.ones(BATCH, PARENTS)), "coupling sums to 1 over the children"
    elif axis == "parent":
        assert _close(routed.coupling.sum(2)[mask], torch.ones(int(mask.sum()))), "coupling sums to 1 over parents"
    elif axis == "leak":
        assert _within(routed.coupling.sum(2), 0, 1 + 1e-9), "coupling sums to at most 1 over the parents"


def adds_up(subject: Subject) -> None:
    """Where there is a gain, each parent points along the sum of gain * vote; unsquashed it is that sum."""
    u, vote = example()
    routing = subject.make()
    routed = routing(u, vote, some_masked())
    if routed.gain is None:
        return
    assert routed.voters is not None, "a gain goes with voters"
    total = torch.einsum("bij,bijd->bjd", routed.gain, vote(routed.voters))
    if routing.activation_is_length:
        ratio = length(routed.parents, keepdim=True) / length(total, keepdim=True)
        assert _within(ratio, 0, 1 + 1e-9), "squash shortens"
        total = total * ratio
    assert _close(routed.parents, total), "parents are the sum of gain * vote"


def scores_by_length(subject: Subject) -> None:
    """The activation is the length of the parent, unless the class says otherwise."""
    u, vote = example()
    routed = subject.make()(u, vote)
    if subject.routing.activation_is_length:
        assert _close(routed.activation, length(routed.parents)), "activation is the length of the parent"
        assert _within(routed.activation, 0, 1 - 1e-12), "a squashed parent is shorter than 1"


def ignores_batch_mates(subject: Subject) -> None:
    """A document alone gets what it gets in a batch, in any order of the batch."""
    u, vote = example(batch=4)
    routing = subject.make()
    together = routing(u, vote)
    backwards = routing(u.flip(0), vote)
    for place in range(4):
        alone = routing(u[place : place + 1], vote)
        for name in ("parents", "activation", "coupling", "gain", "relation", "iterations"):
            if getattr(together, name) is not None:
                expected = getattr(alone, name)[0]
                assert _close(getattr(together, name)[place], expected), f"{name} does not depend on batch mates"
                assert _close(getattr(backwards, name)[3 - place], expected), f"{name} does not depend on the order"


def ignores_masked_children(subject: Subject) -> None:
    """What a masked child holds changes nothing, not even NaN, and without it the result is the same."""
    u, vote = example()
    routing = subject.make()
    mask = torch.tensor([True, True, True, False, False]).expand(BATCH, -1)
    routed = routing(u, vote, mask)
    noise = u.clone()
    noise[:, 3] = 1e6
    noise[:, 4] = torch.nan
    noise.requires_grad_()
    noisy = routing(noise, vote, mask)
    assert _close(noisy.parents, routed.parents), "the content of a masked child changes nothing"
    assert _close(noisy.activation, routed.activation), "the content of a masked child changes nothing"
    noisy.parents.sum().backward()
    assert noise.grad is not None
    assert not noise.grad[:, 3:].any(), "no gradient reaches a masked child"
    assert bool(torch.isfinite(noise.grad).all()), "masked children leave the gradient finite"
    shorter = deepcopy(routing)
    shorter.n_children = None  # the same weights for a text with fewer children
    without = shorter(u[:, :3], vote.take(slice(3)))
    assert _close(without.parents, routed.parents), "a masked child is as good as no child"
    assert _close(without.activation, routed.activation), "a masked child is as good as no child"


def gives_nothing_for_nothing(subject: Subject) -> None:
    """A document whose children are all masked gets zeros, disturbs no other, and has a finite gradient."""
    u, vote = example()
    mask = torch.ones(BATCH, CHILDREN, dtype=torch.bool)
    mask[1] = False
    u.requires_grad_()
    routing = subject.make()
    routed = routing(u, vote, mask)
    assert _finite(routed)
    assert not routed.parents[1].any(), "parents of an all-masked document are zero"
    assert not routed.activation[1].any(), "activation of an all-masked document is zero"
    assert _close(routed.parents[0], routing(u, vote).parents[0]), "the other documents are as before"
    (routed.parents.sum() + routed.activation.sum()).backward()
    assert u.grad is not None
    assert bool(torch.isfinite(u.grad).all()), "an all-masked document leaves the gradient finite"


def follows_a_new_order_of_children(subject: Subject) -> None:
    """Permuted children permute the coupling and leave the parents."""
    u, vote = example()
    order = torch.tensor([3, 0, 4, 1, 2])
    routing = subject.make()
    before, after = routing(u, vote), routing(u[:, order], vote.take(order))
    assert _close(after.parents, before.parents), "the order of the children does not change the parents"
    assert _close(after.activation, before.activation), "the order of the children does not change the activation"
    if before.coupling is not None and after.coupling is not None:
        assert _close(after.coupling, before.coupling[:, order]), "the coupling follows the children"
    if before.relation is not None and after.relation is not None:
        assert _close(after.relation, before.relation[:, order][:, :, order]), "the relation follows the children"


def follows_a_new_order_of_parents(subject: Subject) -> None:
    """Permuted votes permute the parents, for all methods without weights of their own for each parent."""
    if not subject.routing.needs_vote:
        return
    u, vote = example()
    order = torch.tensor([2, 0, 3, 1])
    routing = subject.make()
    before, after = routing(u, vote), routing(u, vote.take(slice(None), order))
    assert _close(after.parents, before.parents[:, order]), "the parents follow their votes"
    assert _close(after.activation, before.activation[:, order]), "the activation follows the votes"


def is_deterministic(subject: Subject) -> None:
    """The same input gives the same bits, and the input is left as it was."""
    u, vote = example()
    kept = u.clone()
    routing = subject.make()
    first, second = routing(u, vote), routing(u, vote)
    assert torch.equal(first.parents, second.parents), "two calls give the same parents"
    assert torch.equal(first.activation, second.activation), "two calls give the same activation"
    assert torch.equal(u, kept), "the children are not changed in place"


def survives_saving(subject: Subject) -> None:
    """Another instance that loads the state gives the same result."""
    u, vote = example()
    trained = subject.make()
    stir(trained)
    loaded = subject.make()
    loaded.load_state_dict(trained.state_dict())
    assert torch.equal(loaded(u, vote).parents, trained(u, vote).parents), "the state holds all that was learned"


def works_in_every_precision(subject: Subject) -> None:
    """float32 agrees with float64; bfloat16 runs, keeps its type and stays near."""
    expected = subject.make()(*example()).activation
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.25)):
        routed = subject.make(dtype=dtype)(*example(dtype=dtype))
        assert routed.parents.dtype == routed.activation.dtype == dtype, f"results in {dtype} for children in {dtype}"
        assert _finite(routed), f"finite in {dtype}"
        difference = (routed.activation.double() - expected).abs().max()
        assert difference < tolerance, f"{dtype} is off by {difference:.2g}"


def refuses_what_it_cannot_route(subject: Subject) -> None:
    """Wrong sizes, shapes, types and numbers are refused with a ValueError that names the argument."""
    u, vote = example()
    routing = subject.make()
    mask = torch.ones(BATCH, CHILDREN, dtype=torch.bool)
    infinite = u.clone()
    infinite[0, 0, 0] = torch.inf
    refused: dict[str, Callable[[], object]] = {
        "children must be at least 1": lambda: subject.make(children=0),
        "parents must be at least 1": lambda: subject.make(parents=0),
        "dim must be at least 1": lambda: subject.make(dim=0),
        "iterations must be at least 1": lambda: subject.make(iterations=0),
        "children must have the shape": lambda: routing(u[0], vote),
        "children must have the shape [batch, child=5": lambda: routing(u[:, :4], vote.take(slice(4))),
        "children must be floating point": lambda: routing(u.long(), vote),
        "children must be finite": lambda: routing(infinite, vote),
        "mask must have the shape": lambda: routing(u, vote, mask[:, :4]),
        "mask must be boolean": lambda: routing(u, vote, mask.float()),
    }
    if subject.routing.needs_vote:
        refused["votes must have the shape"] = lambda: routing(u, vote.take(slice(None), slice(2)))
        refused["needs a vote module"] = lambda: routing(u, None)
    for sentence, act in refused.items():
        given = _refusal(act)
        assert sentence in given, f"expected a ValueError with '{sentence}', got '{given}'"


CHECKS: tuple[Callable[[Subject], None], ...] = (
    has_the_promised_shapes,
    works_at_the_smallest_sizes,
    is_finite_for_any_size_of_vote,
    has_the_right_gradients,
    couples_over_the_declared_axis,
    adds_up,
    scores_by_length,
    ignores_batch_mates,
    ignores_masked_children,
    gives_nothing_for_nothing,
    follows_a_new_order_of_children,
    follows_a_new_order_of_parents,
    is_deterministic,
    survives_saving,
    works_in_every_precision,
    refuses_what_it_cannot_route,
)


def check_routing(routing: str | type[Routing], **options: Any) -> None:
    """Put a routing, made with these options, through every check."""
    cls = look_up("routing", routing, ROUTINGS) if isinstance(routing, str) else routing
    for check in CHECKS:
        check(Subject(cls, options))


def _refusal(act: Callable[[], object]) -> str:
    """What the ValueError says, or nothing where there was none."""
    try:
        act()
    except ValueError as error:
        return str(error)
    return ""


def _same_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    assert tuple(tensor.shape) == shape, f"{name} has the shape {tuple(tensor.shape)}, not {shape}"


def _within(tensor: Tensor, low: float, high: float) -> bool:
    return bool(((tensor >= low) & (tensor <= high)).all())


def _finite(routed: Routed) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in routed if tensor is not None)


def _close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a.double(), b.double(), rtol=1e-9, atol=1e-11)
