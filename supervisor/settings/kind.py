"""A kind of setting: a check of one value, and its JSON Schema for editors.

The kinds themselves are in supervisor/settings/value_kinds.py. The caller knows the place and the name of a setting.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Wrong(Exception):
    """A value that will not do. `mend` is a sentence; with `is_secret` the value is never shown."""

    def __init__(self, what: str, mend: str = "", *, is_secret: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend
        self.is_secret = is_secret


class PathContext(msgspec.Struct, frozen=True):
    """The context of a check: the folder of the configuration file, against which paths are resolved, and the
    environment."""

    folder: Path
    environ: Mapping[str, str]


Form = Mapping[str, object]
"""A JSON Schema (2020-12) for editors: it accepts all that the check accepts, and refuses as much as a schema can."""


class ValueKind(msgspec.Struct, Generic[T], frozen=True):
    """A check and its form. Called, it returns the value as `ipc.settings` has it, or raises Wrong."""

    check: Callable[[object, PathContext], T]
    form: Form
    is_place: bool = False
    """Its values are paths of what the gateway reads or keeps."""

    def __call__(self, value: object, context: PathContext) -> T:
        return self.check(value, context)


def kind(**form: object) -> Callable[[Callable[[object, PathContext], T]], ValueKind[T]]:
    """Make a kind of a check."""
    return lambda check: ValueKind(check, form)


def place(**form: object) -> Callable[[Callable[[object, PathContext], T]], ValueKind[T]]:
    """Make a kind of a check of paths."""
    return lambda check: ValueKind(check, form, is_place=True)
