"""Placeholders in bodies, headers and texts of a template: `{name}` stands for the request's property.

A text that is exactly one placeholder keeps the type of the value. Inside a longer text the value is written as text.
`{{name}}` is the text `{name}`; all other braces stand for themselves. Escapes no value: the caller does.
"""

import re
from typing import Any, TypeAlias
from urllib.parse import unquote

import msgspec

from frontend.manifests.values import NAME, scalar_text

_PIECE = re.compile(rf"\{{(\{{{NAME}\}})\}}|\{{({NAME})\}}")


class Slot(msgspec.Struct, frozen=True):
    """Where the request's property `name` goes. `written`: the name as it stands in the template."""

    name: str
    written: str


class Text(msgspec.Struct, frozen=True):
    """A text around the values of properties."""

    pieces: tuple[str | Slot, ...]


Compiled: TypeAlias = Any
"""A template value with a Slot or Text for each string that holds placeholders."""


class Absent:
    """The type of ABSENT."""


ABSENT = Absent()
"""Stands for a value whose property is not in the request."""


def compiled(value: Any) -> Compiled:
    """A template value with its placeholders found."""
    if isinstance(value, str):
        return _compiled_text(value)
    if isinstance(value, list):
        return [compiled(item) for item in value]
    if isinstance(value, dict):
        return {name: compiled(item) for name, item in value.items()}
    return value


def slots(value: Compiled) -> list[Slot]:
    """All slots of a compiled value, in their order."""
    if isinstance(value, Slot):
        return [value]
    if isinstance(value, Text):
        return [piece for piece in value.pieces if isinstance(piece, Slot)]
    if isinstance(value, dict):
        value = list(value.values())
    return [slot for item in value for slot in slots(item)] if isinstance(value, list) else []


def texts(value: Compiled) -> list[Text]:
    """All texts around values in a compiled value."""
    if isinstance(value, Text):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in texts(item)] if isinstance(value, list) else []


def names_in_keys(value: Any) -> list[str]:
    """Names in braces in the keys of a template value: nothing is put there."""
    if isinstance(value, dict):
        keys = [unquote(match[2]) for key in value for match in _PIECE.finditer(key) if match[2]]
        return keys + [name for item in value.values() for name in names_in_keys(item)]
    return [name for item in value for name in names_in_keys(item)] if isinstance(value, list) else []


def filled(value: Compiled, request: dict[str, Any]) -> Any:
    """The value for a request; ABSENT, or without a member or item, where a property is absent. Raises GateError."""
    if isinstance(value, Slot):
        return request.get(value.name, ABSENT)
    if isinstance(value, Text):
        text = text_of(value, request)
        return ABSENT if text is None else text
    if isinstance(value, dict):
        members = ((name, filled(item, request)) for name, item in value.items())
        return {name: item for name, item in members if item is not ABSENT}
    if isinstance(value, list):
        return [item for item in (filled(item, request) for item in value) if item is not ABSENT]
    return value


def text_of(value: str | Slot | Text, request: dict[str, Any]) -> str | None:
    """The text for a request; None where a property is absent or null. Raises GateError for a list or an object."""
    if isinstance(value, str):
        return value
    texts: list[str] = []
    for piece in (value,) if isinstance(value, Slot) else value.pieces:
        if isinstance(piece, Slot):
            if request.get(piece.name) is None:
                return None
            piece = scalar_text(piece.name, request[piece.name])
        texts.append(piece)
    return "".join(texts)


def _compiled_text(text: str) -> str | Slot | Text:
    pieces: list[str | Slot] = []
    end = 0
    for match in _PIECE.finditer(text):
        pieces.append(text[end : match.start()])
        pieces.append(match[1] or Slot(unquote(match[2]), match[2]))
        end = match.end()
    pieces.append(text[end:])
    kept = tuple(piece for piece in pieces if piece)
    if not any(isinstance(piece, Slot) for piece in kept):
        return "".join(piece for piece in kept if isinstance(piece, str))
    return kept[0] if len(kept) == 1 and isinstance(kept[0], Slot) else Text(kept)
