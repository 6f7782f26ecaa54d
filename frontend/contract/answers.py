"""Answers made of plain members: everything that the gateway promises to send is there and of its declared type.

A client tolerates more than the gateway may send (contract/noun.py): fields that may be None to a client are refused
here as null, and members that are shown as a struct are converted to it, so that no member goes out undeclared.
"""

import types
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec

from contract.noun import NEVER_NULL, Noun

Kind = TypeVar("Kind", bound=Noun)


def answer_of(kind: type[Kind], members: Mapping[str, Any]) -> Kind:
    """The answer with these members. `raw`, which is a client's, is dropped.

    Raises msgspec.ValidationError for a missing, undeclared or mistyped one.
    """
    never_null, shown = _promises(kind)
    for name in never_null:
        if members.get(name, name) is None:
            raise msgspec.ValidationError(f"{kind.__name__}.{name} must not be null")
    declared = {
        name: msgspec.to_builtins(msgspec.convert(members[name], of))
        for name, of in shown.items()
        if members.get(name) is not None
    }
    sent = {name: value for name, value in members.items() if name != "raw"}
    return msgspec.convert({**sent, **declared}, kind)


@cache
def _promises(kind: type[Noun]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The fields that are never null, and the types of those that are shown as a struct."""
    never_null: list[str] = []
    shown: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        for hint in (field.type, *get_args(field.type)):
            if get_origin(hint) is not Annotated:
                continue
            plain, *notes = get_args(hint)
            if NEVER_NULL in notes:
                never_null.append(field.name)
            for note in notes:
                if isinstance(note, msgspec.Meta) and note.extra and "shows" in note.extra:
                    struct = note.extra["shows"]
                    shown[field.name] = (
                        types.GenericAlias(tuple, (struct, ...)) if get_origin(plain) is tuple else struct
                    )
    return tuple(never_null), shown
