"""Requests beside their path: query parameters and a small JSON body, each one struct.

A form is parsed here and nowhere else, and the OpenAPI document is made from the same struct. Refusals name the field
and the mend and never repeat the value: both come from the field's type.
"""

from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, inspect

from frontend.clock import parse_iso
from frontend.errors import GateError
from ipc.texts.encoding import decode_object, decode_object_apart
from ipc.texts.scalars import has_rounded_number

MAX_TEXT = 512
"""Characters of one query parameter."""
MAX_DIGITS = 16
"""Digits of a whole number in a query: as many as 2^53 has."""
MAX_PARAMETERS = 32
MAX_FORM_DEPTH = 4
"""Objects and arrays inside each other in which a form has fields."""
MAX_BODY_BYTES = 65_536
"""Body of every endpoint but execute."""


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Query parameters. Fields are text, whole numbers, literals or a Moment, and have a default.

    One more kind is an object of texts: its members are parameters `<field>.<member>`.
    """


class JsonBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JSON body. An empty one is `{}`. `refused_as` is the code of one that does not fit."""

    refused_as: ClassVar[str] = "invalid_request"
    refuses_rounded: ClassVar[bool] = False
    """A number with more digits than a double keeps is refused: what would be kept is another number."""


END = r"\Z"
CallBody = Annotated[bytes, Meta(extra={"schema": {"type": ["object", "array", "string", "number", "boolean"]}})]
"""In a body: the body of a call, as the text that stands there. It is read where that of a call is."""
Moment = Annotated[float, Meta(extra={"schema": {"type": "string", "format": "date-time"}})]
"""In a query: an ISO 8601 time, as Unix seconds."""


def text_like(pattern: str, must: str) -> Meta:
    """For a string that `pattern` describes whole; `must` says the same to people.

    SECURITY: the end of the pattern is END, which the document shows as `$`. To Python alone, `$` is also before a last
    line break, which would let one into a name.
    """
    return Meta(pattern=f"^(?:{pattern}){END}", extra={"must": must})


StoredText = Annotated[str, text_like(r"[^\x00]*", "a string without a NUL character")]
"""A text that rows are looked for by: no PostgreSQL has one with a NUL character."""
Form = TypeVar("Form", bound=msgspec.Struct)


def parse_query(form: type[Form], text: str) -> Form:
    """The query `text` as a `form`. Raises GateError invalid_request."""
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=MAX_PARAMETERS
        )
    except ValueError:
        raise _refuse("the query string does not parse") from None
    fields = {field.encode_name: field for field in _fields(form)}
    values: dict[str, Any] = {}
    for given, value in pairs:
        name, dot, member = given.partition(".")
        field = fields.get(name)
        if field is None or bool(dot) != isinstance(_plain(field.type), inspect.DictType):
            raise _refuse(
                f"unknown query parameter; known are: {', '.join(map(_parameter, fields.values())) or 'none'}"
            )
        into, key = (values.setdefault(name, {}), member) if dot else (values, name)
        if key in into:
            raise _refuse(f"{name}: given twice")
        if len(value) > MAX_TEXT:
            raise _refuse(f"{name}: longer than {MAX_TEXT} characters")
        into[key] = _from_text(value, field)
    return _converted(form, values)


def _parameter(field: inspect.Field) -> str:
    is_object = isinstance(_plain(field.type), inspect.DictType)
    return f"{field.encode_name}.<member>" if is_object else field.encode_name


def parse_body(form: type[Form], raw: bytes) -> Form:
    """The body `raw` as a `form`. Raises GateError, as the form is refused."""
    try:
        return _parsed(form, raw)
    except GateError as error:
        raise GateError(getattr(form, "refused_as", error.code), **error.extra) from None


def _parsed(form: type[Form], raw: bytes) -> Form:
    body, is_rounded = dict[str, Any](), False
    apart = {field.encode_name for field in _fields(form) if isinstance(_plain(field.type), inspect.BytesType)}
    if raw.strip():
        try:
            body = decode_object_apart(raw, apart) if apart else decode_object(raw)
            is_rounded = getattr(form, "refuses_rounded", False) and has_rounded_number(raw)
        except (ValueError, RecursionError):
            raise _refuse("the body must be a JSON object") from None
    if is_rounded:
        raise _refuse("a number has more digits than can be compared")
    known = [field.encode_name for field in _fields(form)]
    if form.__struct_config__.forbid_unknown_fields and not set(body) <= set(known):
        raise _refuse(f"unknown member; known are: {', '.join(known) or 'none'}")
    return _converted(form, body)


def wanted(node: inspect.Type) -> str:
    """The expectation for a value of this type, as the end of the sentence "it must be"."""
    match node:
        case inspect.Metadata(extra={"must": str(text)}):
            return text
        case inspect.Metadata():
            return wanted(node.type)
        case inspect.UnionType():
            return " or ".join(wanted(part) for part in node.types if not isinstance(part, inspect.NoneType))
        case inspect.LiteralType():
            return f"one of {', '.join(map(str, node.values))}"
        case inspect.IntType():
            return f"a whole number{_between(node.ge, node.le)}"
        case inspect.FloatType():
            return "an ISO 8601 time such as 2026-01-31T12:00:00Z"
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "a string" + (f"{_between(node.min_length, node.max_length)} characters" if node.max_length else "")
        case inspect.ListType():
            return "an array" + (f"{_between(node.min_length, node.max_length)} items" if node.max_length else "")
        case inspect.StructType():
            return f"an object with {', '.join(field.encode_name for field in node.fields)}"
        case _:
            return "an object"


def _between(low: float | None, high: float | None) -> str:
    return "" if high is None else f" from {low or 0} to {high}" if low != high else f" of {high}"


def _from_text(text: str, field: inspect.Field) -> object:
    node = _plain(field.type)
    try:
        if isinstance(node, inspect.IntType):
            if not (text.isascii() and text.isdigit()) or len(text) > MAX_DIGITS:
                raise ValueError("not a whole number")
            return int(text)
        return parse_iso(text) if isinstance(node, inspect.FloatType) else text
    except ValueError:
        raise _refuse(f"{field.encode_name}: must be {wanted(field.type)}") from None


def _plain(node: inspect.Type) -> inspect.Type:
    """A field's type without its notes and without null."""
    if isinstance(node, inspect.Metadata):
        return _plain(node.type)
    if isinstance(node, inspect.UnionType):
        return next(_plain(part) for part in node.types if not isinstance(part, inspect.NoneType))
    return node


def _converted(form: type[Form], members: dict[str, Any]) -> Form:
    try:
        return msgspec.convert(members, form)
    except msgspec.ValidationError:
        members = _with_integers(members)
    try:
        return msgspec.convert(members, form)
    except msgspec.ValidationError:
        raise _refuse(_problem(form, members)) from None


def _with_integers(value: Any, depth: int = 0) -> Any:
    """The same value with 2.0 as 2: to JSON Schema, and so to readers of the document, both are integers."""
    if depth < MAX_FORM_DEPTH and isinstance(value, dict):
        return {name: _with_integers(item, depth + 1) for name, item in value.items()}
    if depth < MAX_FORM_DEPTH and isinstance(value, list):
        return [_with_integers(item, depth + 1) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _problem(form: type[msgspec.Struct], members: dict[str, Any]) -> str:
    """The first field that will not do, and what it must be. A field of a field is named with a dot between them."""
    hints = msgspec.structs.fields(form)
    for field, hint in zip(_fields(form), hints, strict=True):
        name = field.encode_name
        if name not in members:
            if field.required:
                return f"{name}: is missing; must be {wanted(field.type)}"
            continue
        try:
            msgspec.convert(members[name], hint.type)
        except msgspec.ValidationError:
            return _inside(name, field.type, hint.type, members[name])
    return "must be " + wanted(inspect.type_info(form))


def _inside(name: str, node: inspect.Type, kind: Any, value: object) -> str:
    """The place inside a field that will not do: a member of an object, an item of a list, or the field itself."""
    plain = _plain(node)
    if isinstance(plain, inspect.StructType) and isinstance(value, dict):
        return f"{name}.{_problem(plain.cls, value)}"
    if isinstance(plain, inspect.ListType) and isinstance(value, list):
        for place, item in enumerate(value):
            try:
                msgspec.convert([item], kind)
            except msgspec.ValidationError:
                return f"{name}[{place}]: must be {wanted(plain.item_type)}"
    return f"{name}: must be {wanted(node)}"


def _fields(form: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    known = _FIELDS.get(form)
    if known is None:
        node = inspect.type_info(form)
        assert isinstance(node, inspect.StructType)
        known = _FIELDS[form] = node.fields
    return known


_FIELDS: dict[type[msgspec.Struct], tuple[inspect.Field, ...]] = {}


def _refuse(message: str) -> GateError:
    return GateError("invalid_request", message=message)
