"""Every routing, in every reading, keeps every promise."""

from collections.abc import Callable
from typing import Any

import pytest

from capsroute.routing import ROUTINGS
from capsroute.routing.contract import CHECKS
from capsroute.routing.specimen import Subject
from tests.variants import VARIANTS, label


@pytest.mark.parametrize("variant", VARIANTS, ids=label)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[Subject], None], variant: tuple[str, dict[str, Any]]) -> None:
    name, options = variant
    check(Subject(ROUTINGS[name], options))
