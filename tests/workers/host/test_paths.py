"""Paths and patterns: one spelling each, and the same judgement as the front's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontend.egress import paths as front
from workers.host.meter import HostError
from workers.host.paths import matches, split_path


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


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a/b", "a", False),
        ("a/b", "a/*", True),
        ("a/b/c", "a/*", False),
        ("a/b/c", "a/**", True),
        ("a", "a/**", True),
        ("ab", "a/**", False),
        ("a/b/c/d", "**/d", True),
        ("d", "**/d", True),
        ("a/x/b/y/c", "a/**/b/**/c", True),
        ("a/x/b/y/d", "a/**/b/**/c", False),
        ("notes/a.txt", "notes/*.txt", True),
        ("notes/a.txt.sh", "notes/*.txt", False),
        ("notes/ab", "notes/a?", True),
        ("notes/a", "notes/a?", False),
        ("Notes/a", "notes/a", False),
        (".env", "*", True),
    ],
)
def test_patterns_match_segment_by_segment(path: str, pattern: str, expected: bool) -> None:
    assert matches(path.split("/"), [pattern]) is expected


def test_the_root_itself_is_matched_by_any_number_of_segments_only() -> None:
    assert matches([], ["**"])
    assert not matches([], ["*", "a", "a/**"])


def test_a_pattern_full_of_stars_is_judged_quickly() -> None:
    assert not matches(["a" * 255], ["*a" * 100 + "b"])
    assert not matches(["a"] * 500, ["**/" * 100 + "b"])


SEGMENT = st.text(st.sampled_from("ab.*?"), min_size=1, max_size=3)


@given(
    st.lists(st.text(st.sampled_from("ab."), min_size=1, max_size=3), min_size=1, max_size=5),
    st.lists(SEGMENT | st.just("**"), max_size=5),
)
@settings(max_examples=300, deadline=None)
def test_front_and_worker_judge_alike(segments: list[str], pattern: list[str]) -> None:
    path, text = "/".join(segments), "/".join(pattern)
    assert matches(segments, [text]) == front.matches(path, [text])


@given(st.text(max_size=30))
@settings(max_examples=300, deadline=None)
def test_a_path_that_the_front_refuses_is_refused_here_too(path: str) -> None:
    try:
        front.check_path(path)
    except front.InvalidPath:
        with pytest.raises(HostError):
            split_path(path)
    else:
        if not path.startswith(".gateway-") and "/.gateway-" not in path:
            assert split_path(path)
