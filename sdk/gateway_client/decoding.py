"""From the gateway's JSON to frozen dataclasses: required fields are there and of their type, unknown ones are kept.

A dataclass says by its annotations what it needs; a field with a default may be absent or null. What the gateway sends
beyond that stands in `raw`, so that a newer gateway is never an error. Never coerces one type into another.
"""

import contextlib
import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gateway_client.errors import ProtocolViolation

T = TypeVar("T")


class _Mismatch(Exception):
    """Where a value is not what its annotation says."""


def parse_json(body: bytes, what: str) -> Any:
    """One JSON value; duplicate names, NaN and infinities are refused. Raises ProtocolViolation."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(body, object_pairs_hook=object_of_unique_names, parse_constant=refuse_constant)
    # SECURITY: not inside of an `except`: the parser's exception holds the whole text, which may be that of a lease.
    raise ProtocolViolation(f"{what} is not JSON")


def decode(kind: type[T], value: object, what: str) -> T:
    """`value` as a `kind`. Raises ProtocolViolation, with the field and never with its value."""
    try:
        return cast(T, _value(kind, value, what))
    except _Mismatch as error:
        mismatch = str(error)
    raise ProtocolViolation(mismatch)


def object_of_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object for the json module. Raises ValueError when a name stands twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name stands twice")
    return members


def refuse_constant(name: str) -> NoReturn:
    """For the json module: NaN and infinities are no JSON. Raises ValueError."""
    raise ValueError(name)


@lru_cache(maxsize=128)
def _shape(kind: type) -> tuple[tuple[str, Any, bool], ...]:
    """Name, annotation and "may be missing" of each field but `raw`."""
    hints = get_type_hints(kind)
    return tuple(
        (one.name, hints[one.name], one.default is not MISSING or one.default_factory is not MISSING)
        for one in fields(kind)
        if one.name != "raw"
    )


def _struct(kind: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise _Mismatch(f"{where} is not an object")
    members: dict[str, Any] = {}
    for name, annotation, is_optional in _shape(kind):
        given = value.get(name)
        if given is None and is_optional:
            continue
        if name not in value:
            raise _Mismatch(f"{where} has no {name}")
        members[name] = _value(annotation, given, f"{where}.{name}")
    return kind(**members, raw=value)


def _value(annotation: Any, value: object, where: str) -> object:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _value(next(one for one in arguments if one is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise _Mismatch(f"{where} is not an array")
        return tuple(_value(arguments[0], one, f"{where}[{number}]") for number, one in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise _Mismatch(f"{where} is not an object")
        return {name: _value(arguments[1], one, f"{where}.*") for name, one in value.items()}
    if is_dataclass(annotation):
        return _struct(cast(type, annotation), value, where)
    if type(value) is not annotation and not (annotation is float and type(value) is int):
        raise _Mismatch(f"{where} is not of type {annotation.__name__}")
    return value
