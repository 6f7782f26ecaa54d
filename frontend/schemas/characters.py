"""Sets of characters as sorted ranges of code points: the characters that one step of a pattern may match.

Exact for literal characters and ranges. A Unicode property is exact below U+0250 and includes all characters above, so
that overlapping sets are never reported as disjoint. Never looks at a text.
"""

import unicodedata
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]
"""Sorted, not touching, both ends included."""

LAST = 0x10FFFF
ANY: Ranges = ((0, LAST),)
NOTHING: Ranges = ()
_EXACT_BELOW = 0x250


def union(*sets: Ranges) -> Ranges:
    """Every character of any of the sets."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(one for ranges in sets for one in ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def without(ranges: Ranges) -> Ranges:
    """Every other character."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        gaps.append((start, LAST))
    return tuple(gaps)


@lru_cache(maxsize=4096)
def meet(one: Ranges, other: Ranges) -> bool:
    """Whether a character is in both sets."""
    left = right = 0
    while left < len(one) and right < len(other):
        if one[left][1] < other[right][0]:
            left += 1
        elif other[right][1] < one[left][0]:
            right += 1
        else:
            return True
    return False


def of_text(text: str) -> Ranges:
    """The characters of a text."""
    return union(*(((ord(character), ord(character)),) for character in text))


DIGIT: Ranges = ((ord("0"), ord("9")),)
WORD: Ranges = union(DIGIT, ((ord("A"), ord("Z")), (ord("a"), ord("z"))), of_text("_"))
SPACE: Ranges = union(of_text("\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"), ((0x2000, 0x200A),))
LINE_ENDS: Ranges = of_text("\n\r\u2028\u2029")


@lru_cache(maxsize=64)
def of_property(name: str, *, is_negated: bool) -> Ranges:
    r"""The characters of `\p{name}`. A property that is no general category counts as none below U+0250."""
    category = name.rpartition("=")[2]
    short = _CATEGORIES.get(category, category)
    below = (
        (code, code) for code in range(_EXACT_BELOW) if unicodedata.category(chr(code)).startswith(short) != is_negated
    )
    return union(tuple(below), ((_EXACT_BELOW, LAST),))


_CATEGORIES = {
    "Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Mark": "M", "Number": "N",
    "Decimal_Number": "Nd", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Space_Separator": "Zs", "Other": "C",
    "Control": "Cc", "Alphabetic": "L", "Uppercase": "Lu", "Lowercase": "Ll",
}  # fmt: skip
