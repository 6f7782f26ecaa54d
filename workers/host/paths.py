"""Paths that a guest may name, and the patterns that allow or deny them.

One spelling a file: nothing is normalised, whatever has another spelling is refused, so that a rule about one spelling
can't be passed by with the other. The front has rules of its own for the same manifests; where the two differ, what
both allow is allowed. Never touches the file system.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from workers.host.meter import HostError

MAX_PATH_BYTES = 4096
MAX_SEGMENT_BYTES = 255
TEMPORARY_PREFIX = ".gateway-"
"""Begins the names of files that are being written; a guest neither names nor sees them."""

_REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\*?\[\]]")


def split_path(path: str) -> list[str]:
    """The segments of a guest's path. Raises HostError invalid-input for what is not one plain spelling."""
    if not path:
        raise HostError("invalid-input", "the path is empty")
    if path.startswith("/"):
        raise HostError("invalid-input", "the path is absolute; paths are relative to the action's root")
    if _REFUSED.search(path):
        raise HostError("invalid-input", "the path holds a character that paths can't hold here")
    if not unicodedata.is_normalized("NFC", path):
        raise HostError("invalid-input", "the path is not in Unicode normal form C")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise HostError("invalid-input", "the path is too long")
    segments = path.split("/")
    for segment in segments:
        if segment in ("", ".", ".."):
            raise HostError("invalid-input", "the path holds an empty, `.` or `..` segment")
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise HostError("invalid-input", "a segment of the path is too long")
        if segment.startswith(TEMPORARY_PREFIX):
            raise HostError("denied", "the path names a file that is being written")
    return segments


def matches(segments: Sequence[str], patterns: Iterable[str]) -> bool:
    """True when one pattern matches all segments: `*` any part of one, `?` one character, `**` any number of them."""
    return any(_glob(segments, pattern.split("/"), "**", _segment_matches) for pattern in patterns)


def _segment_matches(segment: str, pattern: str) -> bool:
    return _glob(segment, pattern, "*", lambda character, wanted: wanted in ("?", character))


def _glob(items: Sequence[str], pattern: Sequence[str], star: str, fits: Callable[[str, str], bool]) -> bool:
    """Only the last star is ever reconsidered: the work is bounded by the product of the lengths."""
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
