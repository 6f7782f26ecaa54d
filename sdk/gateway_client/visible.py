"""Text that came from elsewhere, so that a person sees every character of it.

Characters that could hide, disguise or reorder text are written as \\uXXXX. The gateway writes held requests in the
same way, and doubles every backslash (docs/decisions/approvals.md, "Approvals"); its text is not changed again here.
"""

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
"""Controls, formats, what is not assigned, and spaces that look like another one (the one of ASCII is shown)."""
_WITHOUT_LOOKS: Final = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164),
        (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
)  # fmt: skip
"""Invisible characters of other categories: Default_Ignorable_Code_Point of Unicode, and the empty braille pattern."""
_TO_THE_LEFT: Final = frozenset({"R", "AL", "AN"})
_WITHOUT_DIRECTION: Final = frozenset({"NSM", "WS"})
MOST_MARKS: Final = 4
"""Combining marks on one character, more than any script needs; those after them are written out."""
_DELETION: Final = "\u1dfb"
"""Combining deletion mark: strikes its character out, and has another combining class than overlays."""


def visible(text: str) -> str:
    """The same text with what can't be seen, or is seen as something else, as \\uXXXX."""
    if text.isascii() and text.isprintable():
        return text
    is_mixed = _mixes_directions(text)
    shown: list[str] = []
    marks, has_base = 0, False
    for one in text:
        if unicodedata.category(one).startswith("M"):
            marks += 1
            is_shown = has_base and marks <= MOST_MARKS and one not in _WITHOUT_LOOKS and not _is_overlay(one)
        else:
            marks = 0
            is_shown = has_looks(one) and not (is_mixed and unicodedata.bidirectional(one) in _TO_THE_LEFT)
            has_base = is_shown and one not in " \\"
        shown.append(one if is_shown else _escape(one))
    return "".join(shown)


def has_looks(one: str) -> bool:
    """Whether a character can be seen, and looks like no other one that can't."""
    return one == " " or (unicodedata.category(one) not in _HIDDEN and one not in _WITHOUT_LOOKS)


def _is_overlay(one: str) -> bool:
    """Whether a mark strikes out or encloses the character that carries it: combining class 1 of Unicode, or Me."""
    return unicodedata.combining(one) == 1 or unicodedata.category(one) == "Me" or one == _DELETION


def _mixes_directions(text: str) -> bool:
    """Whether its characters may be shown in another order than they have."""
    directions = {unicodedata.bidirectional(one) for one in text}
    return bool(directions & _TO_THE_LEFT) and bool(directions - {"R", "AL"} - _WITHOUT_DIRECTION)


def _escape(one: str) -> str:
    code = ord(one)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
