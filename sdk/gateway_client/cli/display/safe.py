"""Text that came from elsewhere, made safe to show: what could deceive a terminal is written as \\uXXXX.

SECURITY: agents choose strings that reach an operator's terminal by way of the gateway. gatectl prints such a
string only through these functions, and they never drop a character silently.
"""

import json
from typing import Any

from gateway_client.visible import visible

_LONG = 160


def safe(value: object) -> str:
    """`value` as one line of text that hides and disguises nothing."""
    return visible(value if isinstance(value, str) else str(value))


def short(value: object, length: int = _LONG) -> str:
    """`safe`, cut for a table; a cut says how much is missing."""
    text = safe(value)
    return text if len(text) <= length else f"{text[:length]}… ({len(text) - length} more)"


def one_line(value: object) -> str:
    """A JSON value on one line, safe."""
    return safe(json.dumps(value, ensure_ascii=False, separators=(", ", ": "), sort_keys=True))


def json_text(value: object, indent: int | None = None) -> str:
    """JSON for programs, which is lossless, in ASCII: also safe where a person looks at it."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, ensure_ascii=True, indent=indent, separators=separators)
    return text.replace("\x7f", "\\u007f")  # may stand inside of strings alone


def lines(text: str) -> str:
    """A text of several lines, each of them safe, ends kept."""
    return "\n".join(safe(line) for line in text.split("\n"))


def plain(value: Any) -> str:
    """A cell of a table: `-` for nothing, words for truth, names with commas."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(safe(one) for one in value) or "-"
    if isinstance(value, dict):
        return one_line(value)
    return safe(value)
