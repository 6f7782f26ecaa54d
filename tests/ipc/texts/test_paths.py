"""Paths and patterns: one spelling each, and one judgement for front and worker."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.texts.paths import InvalidPath, check_path, check_pattern, matches


@pytest.mark.parametrize("path", ["a", "notes/hello.txt", "ünïcode/é.txt", "a b/c", "...", "a/..b", ".hidden"])
def test_a_plain_relative_path_is_taken(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("../secret", "dot_segment"),
        ("a/../b", "dot_segment"),
        ("./a", "dot_segment"),
        ("a//b", "empty_segment"),
        ("a/", "empty_segment"),
        ("a\x00b", "control_character"),
        ("a\nb", "control_character"),
        ("a\u2028b", "control_character"),
        ("a\ud800b", "control_character"),
        ("a\\b", "backslash"),
        ("reports/\u202egpj.exe", "invisible_character"),
        ("a\u200bb", "invisible_character"),
        ("a\ufe0f", "invisible_character"),
        ("a\u3164", "invisible_character"),
        ("reports/ ", "space_at_end"),
        (" a", "space_at_end"),
        ("a /b", "space_at_end"),
        ("a/\u3000b", "space_at_end"),
        ("b\u00a0", "space_at_end"),
        ("e\u0301", "not_nfc"),
        ("a*", "wildcard_character"),
        ("a?", "wildcard_character"),
        ("[a]", "wildcard_character"),
        ("a/" * 2048 + "ab", "too_long"),
        ("é" * 128, "too_long"),
        ("\x00" * 4097, "too_long"),
    ],
)
def test_a_path_with_another_spelling_is_refused_by_rule(path: str, rule: str) -> None:
    with pytest.raises(InvalidPath) as refused:
        check_path(path)
    assert refused.value.rule == rule


@pytest.mark.parametrize("pattern", ["/a", "a/../b", "a//b", "[ab]", "a**", "**a/b", "", "a/ *", "\u202ea/*"])
def test_a_pattern_is_a_relative_path_too(pattern: str) -> None:
    with pytest.raises(InvalidPath):
        check_pattern(pattern)


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("notes/a.txt", "notes/*.txt", True),
        ("notes/a/b.txt", "notes/*.txt", False),
        ("notes/a/b.txt", "notes/**", True),
        ("notes", "notes/**", True),
        ("notesx/a", "notes/**", False),
        ("a/b/c/d.txt", "a/**/d.txt", True),
        ("a/d.txt", "a/**/d.txt", True),
        ("a/b/d.txt/e", "a/**/d.txt", False),
        ("x/y/secret", "**/secret", True),
        ("secret", "**/secret", True),
        ("ab", "a?", True),
        ("a", "a?", False),
        ("a/b", "a?b", False),
        ("A", "a", False),
        ("anything/at/all", "**", True),
        ("aaab", "*a*b", True),
        ("aaac", "*a*b", False),
    ],
)
def test_patterns_match_per_segment(path: str, pattern: str, expected: bool) -> None:
    check_pattern(pattern)
    assert matches(path.split("/"), [pattern]) is expected


@given(st.text("ab", min_size=1, max_size=12), st.text("ab*?", min_size=1, max_size=8))
def test_within_a_segment_patterns_agree_with_fnmatch(segment: str, pattern: str) -> None:
    if "**" not in pattern:
        assert matches([segment], [pattern]) == fnmatch.fnmatchcase(segment, pattern)


def test_the_root_itself_is_matched_by_any_number_of_segments_only() -> None:
    assert matches([], ["**"])
    assert not matches([], ["*", "a", "a/**"])


def test_a_pattern_full_of_stars_is_judged_quickly() -> None:
    assert not matches(["a" * 255], ["*a" * 100 + "b"])
    assert not matches(["a"] * 500, ["**/" * 100 + "b"])
