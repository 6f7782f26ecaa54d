"""Text that an agent chose, written so that a person sees every character of it, and so that two texts look different.

SECURITY: an operator decides about a held call by this text. A character that could hide, disguise or reorder is
written as \\uXXXX, and a backslash as two, so that the original can be read back: no two texts are shown alike.
"""

import re
import unicodedata
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
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
"""Invisible characters of other categories: Default_Ignorable_Code_Point of Unicode, and the empty braille pattern."""
_TO_THE_LEFT: Final = frozenset({"R", "AL", "AN"})
_WITHOUT_DIRECTION: Final = frozenset({"NSM", "WS"})
MOST_MARKS: Final = 4
"""Combining marks on one character, more than any script needs; those after them are written out."""
_DELETION: Final = "\u1dfb"
"""Combining deletion mark: strikes its character out, and has another combining class than overlays."""
_MOST_KNOWN: Final = 20_000
"""Characters that a table remembers from text to text."""
_MOST_OF_TEXT: Final = 100_000
"""Characters that the table of one text remembers."""
_PIECE: Final = 32 * 1024
"""Characters that are translated in one step: other threads of the interpreter wait for as long as it takes."""
_CONTROLS: Final = re.compile("[\x00-\x1f]")
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7e]+")


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
    if _CONTROLS.search(text):
        return _BEYOND_ASCII.sub(lambda found: _json_string(found[0]), text)
    # Quotes and backslashes, which the encoder has doubled, are undone: each begins where a backslash does.
    return _json_string(text).replace("\\\\", "\0").replace('\\"', '"').replace("\0", "\\")


def has_looks(one: str) -> bool:
    """Whether a character can be seen, and looks like no other one that can't."""
    return one == " " or (unicodedata.category(one) not in _HIDDEN and one not in _WITHOUT_LOOKS)


def is_invisible(one: str) -> bool:
    """Whether a character takes no place in a text, or directs how others are shown."""
    return one in _WITHOUT_LOOKS or unicodedata.category(one) in {"Cf", "Zl", "Zp"}


class _Escaping(dict[int, str]):
    """How each character is written, for str.translate: as itself where `is_shown` says so. Filled by use."""

    def __init__(self, is_shown: Callable[[str], bool], most: int = _MOST_KNOWN) -> None:
        self._is_shown = is_shown
        self._most = most

    def with_room(self, count: int) -> "_Escaping":
        """A table for a text of so many different characters: this one, or one of its own for a text of very many. No
        text fills a table for those that follow."""
        if count > _MOST_KNOWN:
            return _Escaping(self._is_shown, _MOST_OF_TEXT)
        if len(self) + count > _MOST_KNOWN:
            self.clear()
        return self

    def __missing__(self, code: int) -> str:
        one = chr(code)
        written = one if self._is_shown(one) else _escape(one)
        if len(self) < self._most:
            self[code] = written
        return written


def _is_clear(one: str) -> bool:
    return one != "\\" and has_looks(one) and not _is_overlay(one)


def _is_clear_among_others(one: str) -> bool:
    return unicodedata.bidirectional(one) not in _TO_THE_LEFT and _is_clear(one)


_TABLES: Final = (_Escaping(_is_clear), _Escaping(_is_clear_among_others))
"""For text of one direction, and for text that mixes them."""
_ESCAPES: Final = _Escaping(lambda _: False)


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    distinct = set(text)
    table = _TABLES[_mixes_directions(distinct)].with_room(len(distinct))
    changed = {one for one in distinct if table[ord(one)] != one}
    marks = {one for one in distinct if unicodedata.category(one).startswith("M")}
    if not marks:
        return _written(text, table) if changed else text
    no_bases = {*changed, " "}
    written: list[str] = []
    last = 0
    for found in re.finditer(f"[{re.escape(''.join(sorted(marks)))}]+", text):
        start, end = found.span()
        carried = start + MOST_MARKS if start and text[start - 1] not in no_bases else start
        if carried < end:
            written += _written(text[last:carried], table), _written(text[carried:end], _ESCAPES)
            last = end
    return "".join((*written, _written(text[last:], table)))


def _written(text: str, table: _Escaping) -> str:
    if len(text) <= _PIECE:
        return text.translate(table)
    return "".join([text[at : at + _PIECE].translate(table) for at in range(0, len(text), _PIECE)])


def has_overlay(text: str) -> bool:
    """Whether a mark in it is drawn over other characters."""
    return not text.isascii() and any(map(_is_overlay, set(text)))


def _is_overlay(one: str) -> bool:
    """Whether a mark strikes out or encloses the character that carries it: combining class 1 of Unicode, or Me."""
    return unicodedata.combining(one) == 1 or unicodedata.category(one) == "Me" or one == _DELETION


def _mixes_directions(characters: set[str]) -> bool:
    """Whether they may be shown in another order than they have."""
    directions = {unicodedata.bidirectional(one) for one in characters}
    return bool(directions & _TO_THE_LEFT) and bool(directions - {"R", "AL"} - _WITHOUT_DIRECTION)


def _escape(one: str) -> str:
    code = ord(one)
    return "\\\\" if one == "\\" else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_string(text: str) -> str:
    return encode_basestring_ascii(text)[1:-1]
