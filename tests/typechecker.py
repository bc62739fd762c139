"""The checker of annotations in the test run: beartype, but for two kinds of argument that capsroute checks itself.

Users run without a checker, so what a bad name or a bad shape gets is our own ValueError; beartype would come first
and hide it. Literal arguments are therefore left alone, here and nowhere else.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

from beartype import BeartypeConf, beartype

CHECKER = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is a float, as in the language


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """beartype without the Literal arguments."""
    hints = function.__annotations__
    for name in [name for name, hint in hints.items() if name != "return" and _has_literal(hint)]:
        del hints[name]
    return CHECKER(function)


def _has_literal(hint: object) -> bool:
    return get_origin(hint) is Literal or any(_has_literal(part) for part in get_args(hint))
