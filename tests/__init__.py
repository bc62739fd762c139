"""The checks of capsroute. `check` is named in pyproject.toml: the import hook finds it in the package alone."""

from tests.typechecker import check as check
