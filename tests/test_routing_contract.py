"""Every routing, in every reading, keeps every promise."""

import inspect
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

import pytest

from capsroute.routing import ROUTINGS, routing_options
from capsroute.routing.contract import CHECKS
from capsroute.routing.specimen import Subject
from tests.variants import VARIANTS, label


@pytest.mark.parametrize("variant", VARIANTS, ids=label)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[Subject], None], variant: tuple[str, dict[str, Any]]) -> None:
    name, options = variant
    check(Subject(ROUTINGS[name], options))


@pytest.mark.parametrize("name", ROUTINGS)
def test_every_value_of_every_option_is_checked(name: str) -> None:
    """A reading that is not among the variants would be neither under contract nor compared with the reference."""
    checked = [options for other, options in VARIANTS if other == name]
    parameters = inspect.signature(ROUTINGS[name]).parameters
    for option in routing_options(name):
        default, hint = parameters[option].default, parameters[option].annotation
        # A name of a choice, on or off, or a number; objects in their place are variants of their own.
        parts = [hint] if get_origin(hint) is Literal else list(get_args(hint) or (hint,))
        named = [value for part in parts if get_origin(part) is Literal for value in get_args(part)]
        values = [*named, *((True, False) if bool in parts else ())]
        for value in values:
            assert value == default or any(given.get(option) == value for given in checked), f"{option}={value!r}"
        if float in parts or int in parts:
            assert any(given.get(option, default) not in (default, *named) for given in checked), option
