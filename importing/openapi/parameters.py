"""The parameters of an operation: where each stands in the request that is sent, in the terms of URL templates."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from frontend.manifests.templates import CREDENTIAL_HEADERS
from importing.openapi.document import ApiOperation
from importing.openapi.schemas import MAX_DESCRIPTION, Schema, SchemaConversion
from importing.refusal import LeftOut
from importing.words import one_line
from ipc.network.framing_headers import is_framing_header

IDEMPOTENCY = "idempotency-key"
_IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})
"""OpenAPI says that parameters of these names mean nothing."""
_REROUTING = frozenset({
    "forwarded", "x-forwarded-host", "x-forwarded-proto", "x-http-method", "x-http-method-override",
    "x-method-override", "x-original-url", "x-rewrite-url", "_method",
})  # fmt: skip
"""SECURITY: some servers and proxies take method, host or path from these, and risk follows from the method sent."""
_PLACES = ("path", "query", "header", "cookie")
_PATH_SIGNS = {"simple": "", "label": ".", "matrix": ";"}
_SLOT = re.compile(r"[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")
_VARIABLE = re.compile(r"\{([^{}]+)\}")
_TO_ENCODE = re.compile(r"(?<![A-Za-z0-9_])[.-]|[.-](?![A-Za-z0-9_])|[^A-Za-z0-9_.-]")
_SAFE_IN_PATH = "/!$&'()*+,;=:@~"


class Parameter(msgspec.Struct, frozen=True):
    """One value of the request. `name` is that of the property and on the wire."""

    name: str
    place: str
    is_required: bool
    schema: Schema
    sign: str
    """The operator of its expression in a path."""
    is_exploded: bool

    @property
    def variable(self) -> str:
        """As a URL template writes it: characters that stand in no name are percent-encoded."""
        encoded = _TO_ENCODE.sub(lambda found: _percent(found[0]), self.name)
        return encoded + "*" * self.is_exploded


def parameters_of(
    operation: ApiOperation, conversion: SchemaConversion, notes: list[str], filled: frozenset[tuple[str, str]]
) -> tuple[Parameter, ...]:
    """All parameters that a request can name; `filled` are places of secrets. Notes say which optional ones are
    missing. Raises LeftOut where a parameter is required and can't be sent."""
    raws: dict[tuple[str, str], dict[str, Any]] = {}
    for raw in operation.parameters:
        followed = operation.document.references.followed(raw)
        name, place = followed.get("name"), followed.get("in")
        if not isinstance(name, str) or not name or place not in _PLACES:
            raise LeftOut("a parameter without name or place")
        if (str(place), name.lower()) not in filled:
            raws[str(place), name] = followed
    found = list(_sendable(raws, conversion, notes))
    for name, times in Counter(one.name for one in found).items():
        if times > 1:
            raise LeftOut(f"two parameters {one_line(name, 60)}")
    return tuple(found)


def _sendable(
    raws: dict[tuple[str, str], dict[str, Any]], conversion: SchemaConversion, notes: list[str]
) -> Iterator[Parameter]:
    for (place, name), raw in raws.items():
        if place == "header" and name.lower() in _IGNORED_HEADERS:
            continue
        is_required = place == "path" or raw.get("required") is True
        try:
            yield _parameter(name, place, raw, conversion, notes, is_required=is_required)
        except LeftOut as reason:
            said = f"{place} parameter {one_line(name, 60)}: {reason}"
            if is_required:
                raise LeftOut(said) from None
            notes.append(f"without the {said}")


def _parameter(
    name: str, place: str, raw: dict[str, Any], conversion: SchemaConversion, notes: list[str], *, is_required: bool
) -> Parameter:
    if place in {"header", "query"} and name.lower() in _REROUTING:
        raise LeftOut("a server may take another method, host or path from it")
    if place == "header" and name.lower() in CREDENTIAL_HEADERS:
        raise LeftOut("it holds credentials, which only a secret of the manifest adds")
    if place == "header" and is_framing_header(name):
        raise LeftOut("only the gateway writes it")
    if not _is_unicode(name):
        raise LeftOut("a name that is no Unicode")
    if place == "header" and not can_be_placed(name):
        raise LeftOut("a name that no template can say")
    if place == "cookie":
        raise LeftOut("cookies are not sent")
    if "content" in raw:
        raise LeftOut("its value is a document of its own")
    schema, more = conversion.convert(raw.get("schema", True))
    notes += (f"{one_line(name, 60)} is {one}" if one.startswith("cut") else f"{name!a}: {one}" for one in more)
    description = one_line(raw.get("description"), MAX_DESCRIPTION)
    if description and isinstance(schema, dict):
        schema = {**schema, "description": description}
    kinds = _kinds(schema)
    given = raw.get("style")
    style = given if isinstance(given, str) else "simple" if place in {"path", "header"} else "form"
    if "object" in kinds:
        raise LeftOut("an object")
    if "array" in kinds:
        schema = _list_of(schema)
    if "array" in kinds and place == "header":
        raise LeftOut("a list in a header")
    if "array" in kinds and place == "query" and style != "form" and raw.get("explode") is not True:
        raise LeftOut(f"a list in the style {one_line(style, 40)}")
    sign = _PATH_SIGNS.get(style, "") if place == "path" else ""
    is_exploded = "array" in kinds and raw.get("explode", style == "form") is True
    return Parameter(name, place, is_required, schema, sign, is_exploded)


def can_be_placed(name: str) -> bool:
    """True for a property that `"{name}"` can name."""
    return _SLOT.fullmatch(name) is not None


def _kinds(schema: Schema) -> set[str]:
    """The types that a schema names, in its alternatives too."""
    if isinstance(schema, bool):
        return set()
    kind = schema.get("type", ())
    kinds = {kind} if isinstance(kind, str) else set(kind)
    return kinds.union(*(_kinds(one) for name in ("anyOf", "oneOf", "allOf") for one in schema.get(name, ())))


def _list_of(schema: Schema) -> Schema:
    """The list among alternatives: a single value is a list of one, and looks the same in a URL."""
    if isinstance(schema, bool) or "type" in schema:
        return schema
    alternatives = [one for name in ("anyOf", "oneOf") for one in schema.get(name, ())]
    found = next((_list_of(one) for one in alternatives if "array" in _kinds(one)), schema)
    if isinstance(found, dict) and "description" in schema:
        return {**found, "description": schema["description"]}
    return found


def url_of(operation: ApiOperation, server: str, parameters: tuple[Parameter, ...]) -> str:
    """The URL template. Raises LeftOut."""
    path = operation.path
    if not path.startswith("/") or "?" in path or "#" in path:
        raise LeftOut("a path that does not begin with /, or has a query or a fragment")
    if not _is_unicode(path):
        raise LeftOut("a path that is no Unicode")
    known = {one.name: one for one in parameters if one.place == "path"}
    written = []
    for index, piece in enumerate(_VARIABLE.split(path)):
        if index % 2 == 0:
            written.append(quote(piece, safe=_SAFE_IN_PATH))
        elif piece not in known:
            raise LeftOut(f"the path's {{{one_line(piece, 60)}}} is no parameter")
        else:
            written.append(f"{{{known[piece].sign}{known[piece].variable}}}")
    missing = known.keys() - set(_VARIABLE.findall(path))
    if missing:
        raise LeftOut(f"the parameter {one_line(min(missing), 60)} is not in the path")
    query = ",".join(one.variable for one in parameters if one.place == "query")
    return server.rstrip("/") + "".join(written) + (f"{{?{query}}}" if query else "")


def _is_unicode(text: str) -> bool:
    """False for half a pair of surrogates, which JSON can escape and no client can send."""
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())
