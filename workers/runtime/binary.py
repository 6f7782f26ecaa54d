"""The binary form of components, as far as it is read without compiling: sections, numbers, names, descriptions.

For parsers of hostile bytes: nothing beyond the input is read, and what is not understood is refused.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

PREAMBLE: Final = b"\0asm\x0d\0\x01\0"
CUSTOM, CORE_MODULE, CORE_INSTANCE, CORE_TYPE, COMPONENT, INSTANCE, ALIAS, TYPE, CANON, START, IMPORT, EXPORT = range(
    12
)
"""Numbers of sections."""
OF_CORE, OF_FUNC, OF_VALUE, OF_TYPE, OF_COMPONENT, OF_INSTANCE = range(6)
"""Sorts of what is imported, exported and aliased."""
MAX_SECTIONS: Final = 100_000
"""The bound for one component. Compilers write some dozens; a stranger's bytes may hold sixty million."""


class NotAComponent(ValueError):
    """The bytes are no component, or use an encoding that is not known here."""


class Described(NamedTuple):
    """The description of an import after its name: sort, whether it is a resource, and where the next thing begins."""

    sort: int
    is_resource: bool
    end: int


def sections(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, where its body begins, where it ends) of each section of the component in `data[begin:end]`. Raises
    NotAComponent, and IndexError where the data end."""
    if data[begin : begin + len(PREAMBLE)] != PREAMBLE:
        raise NotAComponent("not a component")
    position = begin + len(PREAMBLE)
    for _ in range(MAX_SECTIONS):
        if position >= end:
            return
        number = data[position]
        size, body = unsigned(data, position + 1)
        position = body + size
        if position > end:
            raise NotAComponent("a section is cut short")
        yield number, body, position
    raise NotAComponent(f"has more than {MAX_SECTIONS} sections")


def unsigned(data: bytes, position: int) -> tuple[int, int]:
    """LEB128 of at most 32 bits, and what comes after it. Raises IndexError at the end of the data."""
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


def text(body: bytes, position: int) -> tuple[bytes, int]:
    """A name with its length before it, and what comes after it."""
    length, position = unsigned(body, position)
    if position + length > len(body):
        raise NotAComponent("a name is cut short")
    return body[position : position + length], position + length


def outer_name(body: bytes, position: int) -> tuple[bytes, int]:
    """The name of an import or export, and what comes after it."""
    if body[position] > 1:
        raise NotAComponent("the name of an import or export has a form that is not supported")
    return text(body, position + 1)


def description(body: bytes, position: int) -> Described:
    """Parse the description of an import."""
    sort = body[position]
    position += 1
    if sort == OF_CORE:
        if body[position] != 0x11:
            raise NotAComponent("an import of a core thing that is no module")
        position += 1
    elif sort == OF_VALUE:
        raise NotAComponent("an import of a value")
    elif sort == OF_TYPE:
        bound = body[position]
        position += 1
        if bound > 1:
            raise NotAComponent("an import of a type with an unknown bound")
        if bound == 1:
            return Described(sort, True, position)
    elif sort not in (OF_FUNC, OF_COMPONENT, OF_INSTANCE):
        raise NotAComponent("an import of an unknown sort")
    _, position = unsigned(body, position)
    return Described(sort, False, position)
