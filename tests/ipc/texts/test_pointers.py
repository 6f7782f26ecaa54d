from typing import Any

import pytest

from ipc.texts.pointers import MAX_SCALAR_BYTES, MAX_SCALARS, NotScalar, value_at, values_at

DOCUMENT: dict[str, Any] = {"a/b": [1, {"~": None}], "": 0, "c": {"d": []}}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/a~1b/0", 1), ("/a~1b/1/~0", None), ("/", 0), ("/c/d", []), ("/c", {"d": []})],
)  # fmt: skip
def test_a_pointer_leads_to_its_value(pointer: str, value: Any) -> None:
    assert value_at(DOCUMENT, pointer) == value


@pytest.mark.parametrize(
    "pointer", ["/x", "/a~1b/2", "/a~1b/-1", "/a~1b/-", "/a~1b/00", "/a~1b/²", "/c/d/0", "//x", "/a~1b/0/x"]
)
def test_a_pointer_to_nothing_is_told(pointer: str) -> None:
    with pytest.raises(LookupError):
        value_at(DOCUMENT, pointer)


def test_values_are_read_by_pointer_as_written_and_absent_ones_are_left_out() -> None:
    document = {"amount": 1e2, "lines": ["a", None, True], "a/b": "x", "more": {"n": 0}}
    values = values_at(document, ["/amount", "/lines", "/a~1b", "/more/n", "/none", "/lines/7"])
    assert values == {"/amount": 100.0, "/lines": ["a", None, True], "/a~1b": "x", "/more/n": 0}


@pytest.mark.parametrize(
    "value", [{}, [[]], [{"a": 1}], ["x"] * (MAX_SCALARS + 1), "x" * (MAX_SCALAR_BYTES + 1), ["ä" * MAX_SCALAR_BYTES]]
)
def test_no_value_is_read_that_is_no_scalar_or_short_list_of_short_ones(value: Any) -> None:
    with pytest.raises(NotScalar, match=r"^/v: must "):
        values_at({"v": value}, ["/v"])


def test_a_list_at_its_bounds_is_read() -> None:
    document = {"list": ["ä" * (MAX_SCALAR_BYTES // 2)] * MAX_SCALARS}
    assert values_at(document, ["/list"]) == {"/list": document["list"]}
