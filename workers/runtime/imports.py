"""A component's top-level imports, read from its bytes without compiling it.

A parser of hostile bytes: reads nothing beyond its input, allocates no more than the input holds, and refuses what it
doesn't understand. What it says decides only a verdict and its message; the linker defines no more than the manifest
lists, whatever a component claims.
"""

from typing import NamedTuple

from workers.interfaces import INTERFACES, TYPES

_PREAMBLE = b"\0asm\x0d\0\x01\0"
_IMPORT_SECTION = 10
_CORE_MODULE, _FUNC, _VALUE, _TYPE, _COMPONENT, _INSTANCE = range(6)
SORTS = ("core module", "func", "value", "type", "component", "instance")


class NotAComponent(ValueError):
    """The bytes are no component, or use an encoding that is not known here."""


class Import(NamedTuple):
    """One import: its name and the sort of thing it is (one of SORTS)."""

    name: str
    sort: str


def component_imports(data: bytes) -> tuple[Import, ...]:
    """Every import of the outermost component, in order. Raises NotAComponent."""
    if data[: len(_PREAMBLE)] != _PREAMBLE:
        raise NotAComponent("not a component")
    try:
        found: list[Import] = []
        position = len(_PREAMBLE)
        while position < len(data):
            section = data[position]
            size, position = _unsigned(data, position + 1)
            end = position + size
            if end > len(data):
                raise NotAComponent("a section is cut short")
            if section == _IMPORT_SECTION:
                found += _import_section(data[position:end])
            position = end
    except IndexError:
        raise NotAComponent("cut short") from None
    except UnicodeDecodeError:
        raise NotAComponent("an import's name is not UTF-8") from None
    return tuple(found)


def refused_import(found: tuple[Import, ...], granted: tuple[str, ...]) -> str | None:
    """Name of the first import that `granted` (short names, as in `required_imports`) does not cover, or None.

    The package's `types` and imports of plain types hold no function and are always covered.
    """
    covered = {TYPES} | {INTERFACES[name] for name in granted if name in INTERFACES}
    for entry in found:
        if entry.sort == "type" or (entry.sort == "instance" and entry.name in covered):
            continue
        return entry.name
    return None


def _unsigned(data: bytes, position: int) -> tuple[int, int]:
    """LEB128, at most 32 bits. Raises IndexError at the end of the data."""
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            break
        shift += 7
        if shift > 28:
            raise NotAComponent("a number is too long")
    if result >> 32:
        raise NotAComponent("a number is too large")
    return result, position


def _import_section(body: bytes) -> list[Import]:
    count, position = _unsigned(body, 0)
    found = []
    for _ in range(count):
        form = body[position]
        if form > 1:
            raise NotAComponent("an import's name has a form that is not supported")
        length, position = _unsigned(body, position + 1)
        if position + length > len(body):
            raise NotAComponent("an import's name is cut short")
        name = body[position : position + length].decode("utf-8")
        sort, position = _description(body, position + length)
        found.append(Import(name, SORTS[sort]))
    if position != len(body):
        raise NotAComponent("an import section holds more than its imports")
    return found


def _description(body: bytes, position: int) -> tuple[int, int]:
    sort = body[position]
    position += 1
    if sort == _CORE_MODULE:
        if body[position] != 0x11:
            raise NotAComponent("an import of a core thing that is no module")
        position += 1
    elif sort == _VALUE:
        raise NotAComponent("an import of a value")
    elif sort == _TYPE:
        bound = body[position]
        position += 1
        if bound == 1:
            raise NotAComponent("an import of a resource type")
        if bound != 0:
            raise NotAComponent("an import of a type with an unknown bound")
    elif sort not in (_FUNC, _COMPONENT, _INSTANCE):
        raise NotAComponent("an import of an unknown sort")
    _, position = _unsigned(body, position)
    return sort, position
