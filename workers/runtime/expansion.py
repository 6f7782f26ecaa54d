"""How large a component becomes once all that it makes of the components in it is made: read from its bytes.

A component may hold another and make two instances of it, which may make two instances of another: thirty levels, a few
bytes each, are a billion instances, for each of which a compiler takes memory. Counted here before anything is
compiled, in the process that would compile. A parser of hostile bytes: see workers/runtime/binary.py.
"""

from dataclasses import dataclass, field
from typing import Final

from workers.runtime.binary import (
    ALIAS,
    CANON,
    COMPONENT,
    CORE_INSTANCE,
    EXPORT,
    IMPORT,
    INSTANCE,
    OF_COMPONENT,
    OF_CORE,
    NotAComponent,
    description,
    outer_name,
    sections,
    text,
    unsigned,
)  # fmt: skip

MAX_INSTANCES: Final = 10_000
"""More than a store takes: a component with more could be loaded and never called."""
MAX_BYTES: Final = 16 << 20
"""Bounds definitions: instances, aliases, imports, exports and what is lifted and lowered; code does not count."""
MAX_DEPTH: Final = 100
_FROM_INSTANCE, _FROM_CORE_INSTANCE, _FROM_OUTSIDE = range(3)
_DEFINES: Final = frozenset({CORE_INSTANCE, INSTANCE, ALIAS, CANON, IMPORT, EXPORT})


class ModuleTooLarge(NotAComponent):
    """It makes more than is compiled."""


@dataclass
class _Component:
    """A component as far as it is parsed, with the components that it can name, by index."""

    instances: int = 0
    bytes: int = 0
    components: list["_Component"] = field(default_factory=list)

    def add(self, instances: int, size: int) -> None:
        self.instances += instances
        self.bytes += size
        if self.instances > MAX_INSTANCES:
            raise ModuleTooLarge(f"makes more than {MAX_INSTANCES} instances of components and modules")
        if self.bytes > MAX_BYTES:
            raise ModuleTooLarge(
                f"its definitions take more than {MAX_BYTES} bytes, each counted as often as it is made"
            )


def check_expansion(data: bytes) -> None:
    """Raises ModuleTooLarge, and NotAComponent for components that are passed on as it runs: they can't be counted."""
    try:
        _read(data, 0, len(data), [])
    except IndexError:
        raise NotAComponent("cut short, or names a component that it does not hold") from None


def _read(data: bytes, begin: int, end: int, outside: list[_Component]) -> _Component:
    """The component that these bytes are. `outside` are those around it, the outermost first."""
    if len(outside) > MAX_DEPTH:
        raise ModuleTooLarge(f"components lie in each other more than {MAX_DEPTH} deep")
    this = _Component()
    around = [*outside, this]
    for section, first, last in sections(data, begin, end):
        if section == COMPONENT:
            this.components.append(_read(data, first, last, around))
        elif section in _DEFINES:
            this.add(0, last - first)
            _count(section, data[first:last], around)
    return this


def _count(section: int, body: bytes, around: list[_Component]) -> None:
    this = around[-1]
    count, position = unsigned(body, 0)
    if section == CORE_INSTANCE:
        this.add(count, 0)
        return
    read = {INSTANCE: _instance, ALIAS: _alias, IMPORT: _import, EXPORT: _export}.get(section)
    if read is not None:
        for _ in range(count):
            position = read(body, position, around)


def _instance(body: bytes, position: int, around: list[_Component]) -> int:
    """Count an instance: of a component with its arguments, or of exports."""
    form = body[position]
    this = around[-1]
    if form > 1:
        raise NotAComponent("an instance has a form that is not supported")
    if form == 0:
        index, position = unsigned(body, position + 1)
        made = this.components[index]
        this.add(made.instances, made.bytes)
    else:
        position += 1
    this.add(1, 0)
    count, position = unsigned(body, position)
    for _ in range(count):
        _, position = text(body, position) if form == 0 else outer_name(body, position)
        _, position = unsigned(body, _sort(body, position)[1])
    return position


def _alias(body: bytes, position: int, around: list[_Component]) -> int:
    sort, position = _sort(body, position)
    target = body[position]
    first, position = unsigned(body, position + 1)
    if target in (_FROM_INSTANCE, _FROM_CORE_INSTANCE):
        if sort == OF_COMPONENT:
            raise NotAComponent("takes a component out of an instance, which is not supported")
        return text(body, position)[1]
    if target != _FROM_OUTSIDE:
        raise NotAComponent("an alias has a form that is not supported")
    index, position = unsigned(body, position)
    if sort == OF_COMPONENT:
        around[-1].components.append(around[-1 - first].components[index])
    return position


def _import(body: bytes, position: int, _: list[_Component]) -> int:
    meant = description(body, outer_name(body, position)[1])
    if meant.sort == OF_COMPONENT:
        raise NotAComponent("imports a component, which is not supported")
    return meant.end


def _export(body: bytes, position: int, around: list[_Component]) -> int:
    sort, position = _sort(body, outer_name(body, position)[1])
    index, position = unsigned(body, position)
    if sort == OF_COMPONENT:
        around[-1].components.append(around[-1].components[index])
    has_type, position = body[position], position + 1
    return description(body, position).end if has_type else position


def _sort(body: bytes, position: int) -> tuple[int, int]:
    """A sort, and what comes after it: those of core have a byte more."""
    sort = body[position]
    return sort, position + (2 if sort == OF_CORE else 1)
