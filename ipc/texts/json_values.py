"""How many values and names a JSON text has, found out without decoding it.

Time to walk or sign a document grows with its values; names tell of members that a decoder has dropped.
"""

import re

_STRINGS_AND_COLONS = re.compile(rb'"(?:[^"\\]++|\\.)*+"([ \t\r\n]*+:)?', re.DOTALL)


def has_more_values(text: bytes, most: int) -> bool:
    """True if a JSON text has more than `most` values, containers included. May be true of fewer where containers are
    empty. A text that is not JSON is counted right up to its first mistake."""
    if _upper_bound(text) <= most:
        return False
    without_escapes = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    if without_escapes.count(b'"') > 4 * most:  # a value has two strings at the most: its name and itself
        return True
    return _upper_bound(b"".join(without_escapes.split(b'"')[::2])) > most


def names_in(text: bytes) -> int:
    """How many names of members stand in a JSON text, at any depth, those given twice counted twice."""
    return len(list(filter(None, _STRINGS_AND_COLONS.findall(text))))


def _upper_bound(text: bytes) -> int:
    """At least as many as the values, and as many where no string holds such a character and no container is empty."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")
