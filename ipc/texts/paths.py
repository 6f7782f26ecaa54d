"""File paths in a plan: one spelling each, patterns, matching. The front decides and the worker enforces by this.

A path is relative, in NFC, without empty, `.` or `..` segments, so that the text that was decided about names one
file. Patterns match per segment: `*` any part of a segment, `?` one character, `**` any number of segments. Never
touches the file system.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from ipc.texts.visible import is_invisible

MAX_PATH_BYTES = 4096
MAX_SEGMENT_BYTES = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_WILDCARDS = re.compile(r"[*?\[\]]")


class InvalidPath(ValueError):
    """No path that effects may go to. `rule` is a word for machines (`dot_segment`), never the path."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


def check_path(path: str) -> None:
    """Raises InvalidPath unless `path` is one plain spelling of a file below a root.

    SECURITY: nothing is normalised. A path that has another spelling is refused, so that a rule about one spelling
    can't be passed by with the other. Wildcard characters are refused because an approved path becomes a pattern.
    """
    _check(path)
    if _WILDCARDS.search(path):
        raise InvalidPath("wildcard_character")


def check_pattern(pattern: str) -> None:
    """Raises InvalidPath unless `pattern` is a relative path whose segments may hold `*` and `?`, or be `**`."""
    _check(pattern)
    if "[" in pattern or "]" in pattern:
        raise InvalidPath("bracket")
    if any("**" in segment and segment != "**" for segment in pattern.split("/")):
        raise InvalidPath("double_star_in_segment")


def matches(segments: Sequence[str], patterns: Iterable[str]) -> bool:
    """True when one of the patterns matches all segments of a path. `a/**` matches `a` too."""
    return any(_glob(segments, pattern.split("/"), "**", _segment_matches) for pattern in patterns)


def _check(path: str) -> None:
    if not path:
        raise InvalidPath("empty")
    if len(path) > MAX_PATH_BYTES:  # whatever else is asked of a path takes time in proportion to its length
        raise InvalidPath("too_long")
    if _CONTROL.search(path):
        raise InvalidPath("control_character")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise InvalidPath("too_long")
    if path.startswith("/"):
        raise InvalidPath("absolute")
    if "\\" in path:
        raise InvalidPath("backslash")
    # SECURITY: a person decides about a path, and later finds it, by what they see of it.
    if not path.isascii() and any(map(is_invisible, set(path))):
        raise InvalidPath("invisible_character")
    if not unicodedata.is_normalized("NFC", path):
        raise InvalidPath("not_nfc")
    for segment in path.split("/"):
        if not segment:
            raise InvalidPath("empty_segment")
        if segment in {".", ".."}:
            raise InvalidPath("dot_segment")
        if segment != segment.strip():
            raise InvalidPath("space_at_end")
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise InvalidPath("too_long")


def _segment_matches(segment: str, pattern: str) -> bool:
    if "*" not in pattern and "?" not in pattern:
        return segment == pattern
    return _glob(segment, pattern, "*", lambda character, wanted: wanted in {"?", character})


def _glob(items: Sequence[str], pattern: Sequence[str], star: str, fits: Callable[[str, str], bool]) -> bool:
    """Whether `pattern`, where `star` stands for any number of items, matches all of `items`.

    Only the last star is ever reconsidered, so the work is bounded by the product of the lengths.
    """
    at = wanted = 0
    star_at, resume = -1, 0
    while at < len(items):
        if wanted < len(pattern) and pattern[wanted] == star:
            star_at, resume = wanted, at
            wanted += 1
        elif wanted < len(pattern) and fits(items[at], pattern[wanted]):
            at += 1
            wanted += 1
        elif star_at >= 0:
            resume += 1
            at, wanted = resume, star_at + 1
        else:
            return False
    return all(rest == star for rest in pattern[wanted:])
