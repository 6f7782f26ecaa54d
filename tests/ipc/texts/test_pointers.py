from typing import Any

import pytest

from ipc.texts.pointers import value_at

DOCUMENT: dict[str, Any] = {"a/b": [1, {"~": None}], "": 0, "c": {"d": []}}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("/a~1b/0", 1), ("/a~1b/1/~0", None), ("/", 0), ("/c/d", []), ("/c", {"d": []})],
)  # fmt: skip
def test_a_pointer_leads_to_its_value(pointer: str, value: Any) -> None:
    assert value_at(DOCUMENT, pointer) == value


@pytest.mark.parametrize("pointer", ["/x", "/a~1b/2", "/a~1b/-1", "/a~1b/-", "/a~1b/²", "/c/d/0", "//x", "/a~1b/0/x"])
def test_a_pointer_to_nothing_is_told(pointer: str) -> None:
    with pytest.raises(LookupError):
        value_at(DOCUMENT, pointer)
