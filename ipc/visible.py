"""Text that an agent chose, written so that a person sees every character of it, and so that two texts look different.

SECURITY: who decides about a held call decides by what is shown. What could hide, disguise or reorder is written as
\\uXXXX, and a backslash as two, so that a text can be read back from what is shown: no two texts are shown alike.
"""

import unicodedata
from typing import Any, Final

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
"""Of other categories, and shown as nothing: Default_Ignorable_Code_Point of Unicode, and the empty braille pattern."""
_TO_THE_LEFT: Final = frozenset({"R", "AL", "AN"})
_WITHOUT_DIRECTION: Final = frozenset({"NSM", "WS"})
MOST_MARKS: Final = 4
"""Combining marks on one character, more than any script needs; those after them are written out."""


def visible(value: Any) -> Any:
    """The same JSON value, every string and key of it visible. Equal only for equal values."""
    if isinstance(value, str):
        return _visible(value)
    if isinstance(value, dict):
        return {_visible(key): visible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [visible(item) for item in value]
    return value


def in_ascii(text: str) -> str:
    """A JSON text in ASCII, with the same meaning: nothing in it can look like something else."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(one if one < "\x7f" else _json_escape(one) for one in text)


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    is_mixed = _mixes_directions(text)
    shown: list[str] = []
    marks, has_base = 0, False
    for one in text:
        if unicodedata.category(one).startswith("M"):
            marks += 1
            is_shown = has_base and marks <= MOST_MARKS and one not in _WITHOUT_LOOKS
        else:
            marks = 0
            is_shown = has_looks(one) and not (is_mixed and unicodedata.bidirectional(one) in _TO_THE_LEFT)
            has_base = is_shown and one not in " \\"
        shown.append(one if is_shown and one != "\\" else _escape(one))
    return "".join(shown)


def has_looks(one: str) -> bool:
    """Whether a person sees the character."""
    return one == " " or (unicodedata.category(one) not in _HIDDEN and one not in _WITHOUT_LOOKS)


def _mixes_directions(text: str) -> bool:
    """Whether its characters may be shown in another order than they have."""
    directions = {unicodedata.bidirectional(one) for one in text}
    return bool(directions & _TO_THE_LEFT) and bool(directions - {"R", "AL"} - _WITHOUT_DIRECTION)


def _escape(one: str) -> str:
    code = ord(one)
    return "\\\\" if one == "\\" else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_escape(one: str) -> str:
    units = one.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
