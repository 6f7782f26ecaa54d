"""Texts of a published description, made fit to be shown, and names made of them.

SECURITY: such a text may be hostile. It never begins another line of a file, holds no character that hides or reorders
others, and is bounded.
"""

import re
import unicodedata
from collections.abc import Callable

from ipc.texts.visible import has_looks

MAX_ID = 100
_SPACE = re.compile(r"\s+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[^a-z0-9]+")


def one_line(text: object, most: int) -> str:
    """The text on one line without hidden characters, at most `most` characters; empty for anything but text."""
    if not isinstance(text, str):
        return ""
    line = "".join(one for one in _SPACE.sub(" ", text[: most * 4]) if has_looks(one)).strip()
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def snake(text: str) -> str:
    """`listInvoices` as `list_invoices`: lower-case ASCII letters, digits and `_`; empty if nothing is left."""
    plain = unicodedata.normalize("NFKD", text[: MAX_ID * 4]).encode("ascii", "ignore").decode()
    return _BETWEEN.sub("_", _CAMEL.sub("_", plain).lower()).strip("_")[:MAX_ID].strip("_")


def numbered(name: str, is_taken: Callable[[str], bool]) -> str:
    """The name, or with the first number from 2 that makes it free: `refund_2`."""
    if not is_taken(name):
        return name
    number = 2
    while is_taken(f"{name}_{number}"):
        number += 1
    return f"{name}_{number}"
