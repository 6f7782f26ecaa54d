"""A guest's paths: one spelling each, in words that a guest understands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.texts import paths
from workers.host.meter import HostError
from workers.host.paths import split_path


@pytest.mark.parametrize("path", ["a", "a/b.txt", "notes/héllo", "a/.hidden", "..a/b..", "a b/c"])
def test_a_plain_relative_path_is_taken(path: str) -> None:
    assert "/".join(split_path(path)) == path


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/etc/passwd", "..", "../x", "a/../b", "a/..", ".", "./a", "a/./b", "a//b", "a/", "a\0b", "a\nb",
        "a\\b", "..\\x", "a\x7fb", "a\u2028b", "e\u0301", "x" * 256, "/".join(["a" * 200] * 30), "a*", "a?", "a[b]",
        ".gateway-123", "a/.gateway-0f",
    ],
)  # fmt: skip
def test_any_other_spelling_is_refused(path: str) -> None:
    with pytest.raises(HostError) as caught:
        split_path(path)
    assert len(path) < 3 or path not in caught.value.failure.message


@given(st.text(max_size=30))
def test_a_path_that_a_plan_can_not_hold_is_refused(path: str) -> None:
    try:
        paths.check_path(path)
    except paths.InvalidPath:
        with pytest.raises(HostError):
            split_path(path)
    else:
        if not path.startswith(".gateway-") and "/.gateway-" not in path:
            assert split_path(path)
