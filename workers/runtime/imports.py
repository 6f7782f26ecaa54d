"""A component's top-level imports, read from its bytes without compiling it.

A parser of hostile bytes: reads nothing beyond its input, allocates no more than the input holds, and refuses what it
doesn't understand. Its answer decides only a verdict and its message; the linker defines no more than the manifest
lists, whatever a component claims.
"""

from typing import Final, NamedTuple

from workers.interfaces import INTERFACES, TYPES
from workers.runtime.binary import IMPORT, NotAComponent, description, outer_name, sections, unsigned

SORTS = ("core module", "func", "value", "type", "component", "instance")
MAX_IMPORT_BYTES: Final = 1 << 20
"""Bounds one section. The imports of a provider take some hundred bytes; this is read where workers are forked."""


class Import(NamedTuple):
    """One import: its name and the sort of thing it is (one of SORTS)."""

    name: str
    sort: str


def component_imports(data: bytes) -> tuple[Import, ...]:
    """Every import of the outermost component, in order. Raises NotAComponent."""
    imports: list[Import] = []
    try:
        for section, begin, end in sections(data, 0, len(data)):
            if section == IMPORT:
                if end - begin > MAX_IMPORT_BYTES:
                    raise NotAComponent(f"its imports take more than {MAX_IMPORT_BYTES} bytes")
                imports += _import_section(data[begin:end])
    except IndexError:
        raise NotAComponent("cut short") from None
    except UnicodeDecodeError:
        raise NotAComponent("an import's name is not UTF-8") from None
    return tuple(imports)


def refused_import(imports: tuple[Import, ...], granted: tuple[str, ...]) -> str | None:
    """Name of the first import that `granted` (short names, as in `required_imports`) does not cover, or None.

    The package's `types` and imports of plain types hold no function and are always covered.
    """
    covered = {TYPES} | {INTERFACES[name] for name in granted if name in INTERFACES}
    for entry in imports:
        if entry.sort == "type" or (entry.sort == "instance" and entry.name in covered):
            continue
        return entry.name
    return None


def _import_section(body: bytes) -> list[Import]:
    count, position = unsigned(body, 0)
    imports = []
    for _ in range(count):
        name, position = outer_name(body, position)
        meant = description(body, position)
        if meant.is_resource:
            raise NotAComponent("an import of a resource type")
        imports.append(Import(name.decode("utf-8"), SORTS[meant.sort]))
        position = meant.end
    if position != len(body):
        raise NotAComponent("an import section holds more than its imports")
    return imports
