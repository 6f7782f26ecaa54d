"""From the gateway's JSON to nouns: required fields are there and of their type, members that are not known are kept.

Permissive as gateway_client/contract/noun.py says: a field that may be null, or has a default, may be missing or null,
and a literal may be any value of its type. `raw` keeps all that the gateway sent, so that a newer gateway is never an
error. Never converts one type into another.
"""

import contextlib
import json
import types
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import isinf
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar, Union, cast, get_args, get_origin

from msgspec import NODEFAULT, UNSET, structs

from gateway_client.contract.noun import NEVER_NULL, Noun
from gateway_client.errors import ProtocolViolation

N = TypeVar("N", bound=Noun)


class _Mismatch(Exception):
    """The place of a value that does not fit its annotation."""


def parse_json(body: bytes, what: str) -> Any:
    """One JSON value; duplicate names, NaN, infinities and numbers that are no doubles are refused. Raises
    ProtocolViolation."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(body, **STRICT)
    # SECURITY: not inside of an `except`: the parser's exception holds the whole text, which may be that of a lease.
    raise ProtocolViolation(f"{what} is not JSON")


def is_too_deep(value: object) -> bool:
    """Whether lists and objects are nested deeper than evidence may be, and every reader of JSON can go."""
    level = [value]
    for _ in range(MOST_DEEP):
        level = [inside for one in level for inside in _inside(one)]
    return any(isinstance(one, dict | list) for one in level)


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def bounded_json(body: bytes, what: str) -> Any:
    """The same of evidence, which is not nested deeper than MOST_DEEP either."""
    value = parse_json(body, what)
    if is_too_deep(value):
        raise ProtocolViolation(f"{what} is nested too deeply")
    return value


def decode(kind: type[N], value: object, what: str) -> N:
    """`value` as a `kind`. Raises ProtocolViolation, with the field and never with its value."""
    try:
        return cast(N, _value(kind, value, what))
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


def finite_number(text: str) -> float:
    """For the json module: a number with a fraction or an exponent. Raises ValueError beyond the range of a double."""
    number = float(text)
    if isinf(number):
        raise ValueError("a number is beyond the range of a double")
    return number


def finite_integer(text: str) -> int:
    """For the json module: an integer. Raises ValueError likewise."""
    finite_number(text)
    return int(text)


STRICT: Final[Mapping[str, Any]] = {
    "object_pairs_hook": object_of_unique_names, "parse_constant": refuse_constant, "parse_float": finite_number,
    "parse_int": finite_integer,
}  # fmt: skip
"""Options of the json module with which two readers understand a text alike, or neither does."""
MOST_DEEP: Final = 256
INTEGERS: Final = range(-(2**63), 2**63)
"""Integers of evidence: those that every reader can take."""
_REQUIRED = object()


@lru_cache(maxsize=128)
def _shape(kind: type[Noun]) -> tuple[tuple[str, Any, object], ...]:
    """Name, annotation and the value of a missing member of each field but `raw`."""
    return tuple((one.encode_name, one.type, _missing(one)) for one in structs.fields(kind) if one.name != "raw")


def _missing(field: structs.FieldInfo) -> object:
    """The value of a member that is missing or null; _REQUIRED for a required member."""
    plain, notes = _parted(field.type)
    may_be_null = plain is Any or type(None) in get_args(plain)
    if NEVER_NULL in notes and not may_be_null:
        return () if get_origin(plain) is tuple else plain()
    if field.default is not NODEFAULT and field.default is not UNSET:
        return field.default
    return None if may_be_null or field.default is UNSET else _REQUIRED


def _parted(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type and the notes on it. A member that is reserved, always null today, may be anything."""
    if get_origin(annotation) is Annotated:
        plain, *notes = get_args(annotation)
        return plain, tuple(notes)
    return Any if annotation in (None, type(None)) else annotation, ()


def _struct(kind: type[Noun], value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise _Mismatch(f"{where} is not an object")
    members: dict[str, Any] = {}
    for name, annotation, missing in _shape(kind):
        given = value.get(name)
        if given is None and missing is not _REQUIRED:
            members[name] = missing
            continue
        if name not in value:
            raise _Mismatch(f"{where} has no {name}")
        members[name] = _value(annotation, given, f"{where}.{name}")
    return kind(**members, raw=value)


def _value(annotation: Any, value: object, where: str) -> object:
    annotation, _notes = _parted(annotation)
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
    if origin is not None and origin is not Literal and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise _Mismatch(f"{where} is not an object")
        return {name: _value(arguments[1], one, f"{where}.*") for name, one in value.items()}
    if origin is Literal:  # a later version may have more of them
        annotation = type(arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, Noun):
        return _struct(annotation, value, where)
    if type(value) is not annotation and not (annotation is float and type(value) is int):
        raise _Mismatch(f"{where} is not of type {annotation.__name__}")
    return value
