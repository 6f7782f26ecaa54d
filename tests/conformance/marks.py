"""Which rows of the contract a test proves: `@row("lease/session_id")`, and whole tables of such tests at once."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

BOTH_MODES = pytest.mark.parametrize("mode", ["dev", "run"], indirect=True, scope="module")
"""For a row whose outcome depends on the mode: which listeners there are, who the caller is, where keys lie."""
ONLY_DEV = pytest.mark.parametrize("mode", ["dev"], indirect=True, scope="module")
"""For a row that needs an upstream on this machine, which production never reaches."""


def row(*names: str, place: str = "") -> pytest.MarkDecorator:
    """The test proves these rows; `place` (see report.py) where it starts no whole gateway."""
    return pytest.mark.row(*names, place=place)


def rows(
    table: str, cases: Mapping[str, Any], also: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> pytest.MarkDecorator:
    """A test for each row of `cases`: row without its table -> what the test gets as `case`.

    `also` has the rows of other tables that a case proves as well.
    """
    marks = {name: row(f"{table}/{name}", *also.get(name, ())) for name in cases}
    return pytest.mark.parametrize(
        "case", [pytest.param(value, id=name, marks=marks[name]) for name, value in cases.items()]
    )
