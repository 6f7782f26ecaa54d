"""URL templates by RFC 6570 (frontend/manifests/expressions.py), rendered so that a value stays in its place.

Guarantees that no value of a request changes scheme, userinfo, host or port, begins another component, or climbs in the
path; the host itself may be one whole variable, and then it must be a domain name. Ambiguous text is refused; no text
is normalised. Never sends a request.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from frontend.manifests.domains import InvalidDomain, normal_domain
from frontend.manifests.expressions import Encode, Expression, TemplateRefused, read_expression, refuse_undefined
from frontend.manifests.values import refuse_value

MAX_URL_CHARACTERS = 8192
_WHOLE = re.compile(
    r"(https?)://((?:\{(?![/?])[^{}]*\}|[^/?#{])*)"  # the authority ends before `/`, `?`, `{/name}` and `{?name}`
    r"((?:\{(?!\?)[^{}]*\}|\{(?!\?)(?![^{}]*\})|[^?#{])*)"  # one reading of each character: never exponential
    r"(\{\?[^{}]*\}[^#]*|\?[^#]*)?",
    re.DOTALL,
)
_AUTHORITY = re.compile(r"(?:\{([^{}]*)\}|([^{}@:\[\]]+))(:[1-9][0-9]{0,4})?")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_PATH_TEXT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_QUERY_TEXT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ENCODED_CONTROL = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_RESERVED_IN_PATH = "!$&'()*+,;=:@/%"
_DECODINGS = 3
_PATH_SIGNS, _NEEDED_SIGNS = ("", "+", ".", "/", ";"), ("", "+")
_SAMPLES = {"": "x", "+": "x", ".": ".x", "/": "/x", ";": ";x"}
"""The stand-in for each expression where only the literal text of a path is judged."""


class Part(msgspec.Struct, frozen=True):
    """A stretch of a template: literal text, or an expression."""

    text: str = ""
    expression: Expression | None = None


class UrlTemplate:
    """One compiled template. `host` is None when the host is the variable `host_variable`."""

    def __init__(self, text: str) -> None:
        """Raises TemplateRefused."""
        for expression in _EXPRESSION.findall(text):
            read_expression(expression)
        whole = _WHOLE.fullmatch(text)
        if whole is None:
            raise TemplateRefused(
                "must begin with http:// or https:// and have no fragment", "Write the whole address."
            )
        self.scheme, authority, path, query = whole.group(1), whole.group(2), whole.group(3) or "/", whole.group(4)
        self.host, self.host_variable, self._port = _authority(authority)
        self.path = _path(path)
        self.query = _query(query or "")
        self._may_carry_query = query is None and _is_whole_path(self.path[-1].expression)

    @property
    def expressions(self) -> Iterator[Expression]:
        """Those of path and query."""
        return (part.expression for part in (*self.path, *self.query) if part.expression is not None)

    @property
    def variables(self) -> tuple[str, ...]:
        """The request's properties that the URL takes, host first."""
        host = (self.host_variable,) if self.host_variable else ()
        return host + tuple(variable.name for one in self.expressions for variable in one.variables)

    @property
    def needed(self) -> tuple[str, ...]:
        """Those that must have a value: of the host, and of `{name}` and `{+name}` in the path."""
        host = (self.host_variable,) if self.host_variable else ()
        expressions = (part.expression for part in self.path if part.expression is not None)
        return host + tuple(
            variable.name for one in expressions if one.sign in _NEEDED_SIGNS for variable in one.variables
        )

    def render(self, request: dict[str, Any]) -> tuple[str, str]:
        """(URL, host) for a request. Raises GateError schema_violation naming the variable's place and a rule."""
        host = self.host if self.host is not None else self._host(request)
        path = "".join(
            self._in_path(index, part.expression, request) if part.expression else part.text
            for index, part in enumerate(self.path)
        )
        if not path.startswith("/"):  # SECURITY: the text would belong to the host
            path = "/" + path
        climbing = _bad_segment(path.partition("?")[0])
        if climbing:
            refuse_value(self._last_in_path(), climbing)
        query = "".join(
            part.expression.expand(request, _in_query) if part.expression else part.text for part in self.query
        )
        url = f"{self.scheme}://{host}{self._port}{path}{query}"
        if len(url) > MAX_URL_CHARACTERS:
            refuse_value(self.variables[-1] if self.variables else "", "url_too_long")
        return url, host

    def _host(self, request: dict[str, Any]) -> str:
        name = self.host_variable or ""
        value = request.get(name)
        if not isinstance(value, str):
            refuse_value(name, "domain")
        try:
            return normal_domain(value)
        except InvalidDomain:
            refuse_value(name, "domain")

    def _in_path(self, index: int, expression: Expression, request: dict[str, Any]) -> str:
        if expression.sign in _NEEDED_SIGNS:
            for variable in expression.variables:
                refuse_undefined(variable, request.get(variable.name))
        if expression.sign == "+":
            return expression.expand(request, self._reserved(index))
        return expression.expand(request, _in_parameter if expression.sign == ";" else _in_segment)

    def _reserved(self, index: int) -> Encode:
        """`{+name}`: slashes and percent-triplets stay; one leading slash joins the template's own."""
        may_carry_query = self._may_carry_query and index == len(self.path) - 1
        joins = index > 0 and self.path[index - 1].text.endswith("/")

        def encode(name: str, text: str) -> str:
            nonlocal joins
            _check_in_path(name, text)
            if "#" in text:
                refuse_value(name, "fragment")
            if _ENCODED_CONTROL.search(text):
                refuse_value(name, "control_character")
            if "%5c" in text.lower():
                refuse_value(name, "backslash")
            path, mark, query = text.partition("?")
            if mark and not may_carry_query:
                refuse_value(name, "query")
            if joins:
                path, joins = path.removeprefix("/"), False
            return _keep(path, _RESERVED_IN_PATH) + mark + _keep(query, _RESERVED_IN_PATH + "?")

        return encode

    def _last_in_path(self) -> str:
        expressions = (part.expression for part in reversed(self.path) if part.expression is not None)
        return next((one.variables[-1].name for one in expressions), "")


def _authority(text: str) -> tuple[str | None, str | None, str]:
    """(static host, host variable, `:port` or ``)."""
    match = _AUTHORITY.fullmatch(text)
    if match is None or (match.group(3) and not 0 < int(match.group(3)[1:]) < 65536):
        raise TemplateRefused(
            "the host must be static or one whole variable, with a `/` behind it and without userinfo",
            "Write https://api.example.com/… or https://{host}/….",
        )
    expression, host, port = match.groups()
    if host is None:
        read = read_expression(expression)
        if read.sign or len(read.variables) > 1 or read.variables[0].is_exploded:
            raise TemplateRefused(f"the host is {read}", "Write {name}: a host is one whole value.")
        return None, read.variables[0].name, port or ""
    try:
        normal = normal_domain(host)
    except InvalidDomain as error:
        raise TemplateRefused(f"the host {error}", "Write a domain name such as api.example.com.") from None
    if normal != host:
        raise TemplateRefused("the host is not in its normal form", f"Write {normal}.")
    return host, None, port or ""


def _path(text: str) -> tuple[Part, ...]:
    parts = _parts(text, _PATH_TEXT, "path")
    for part in parts:
        if part.expression is not None and part.expression.sign not in _PATH_SIGNS:
            raise TemplateRefused(
                f"{part.expression} stands in the path, where no query has begun", "Write {?name} behind the path."
            )
    if _bad_segment("".join(_SAMPLES[part.expression.sign] if part.expression else part.text for part in parts)):
        raise TemplateRefused("the path has empty or dot segments", "Write the path without them.")
    return parts


def _query(text: str) -> tuple[Part, ...]:
    parts = _parts(text, _QUERY_TEXT, "query")
    for index, part in enumerate(parts):
        sign = part.expression.sign if part.expression else ""
        if sign == "+":
            raise TemplateRefused("{+name} stands in the query, where a value could add parameters", "Write {name}.")
        if sign not in ("", "&") and (index, sign) != (0, "?"):
            raise TemplateRefused(f"{part.expression} stands in the query", "Write {&name}, or name={name}.")
    if len(parts) > 1 and parts[0].expression is not None:
        raise TemplateRefused(
            f"text stands behind {parts[0].expression}, which may be left out with its question mark",
            "Name all variables in it, as {?a,b}, or write ?fixed=1{&a,b}.",
        )
    return parts


def _parts(text: str, allowed: re.Pattern[str], component: str) -> tuple[Part, ...]:
    """Literals and expressions in turn."""
    parts: list[Part] = []
    for index, piece in enumerate(_EXPRESSION.split(text)):
        if index % 2 == 1:
            parts.append(Part(expression=read_expression(piece)))
            continue
        if not allowed.fullmatch(piece):
            raise TemplateRefused(f"a character in the {component} must be percent-encoded", "Encode it as %XX.")
        if piece:
            parts.append(Part(text=piece))
    return tuple(parts)


def _is_whole_path(expression: Expression | None) -> bool:
    """True for `{+name}` with a single variable: as the last of the path, its value may carry a query."""
    return expression is not None and expression.sign == "+" and len(expression.variables) == 1


def _check_in_path(name: str, text: str) -> None:
    if _CONTROL.search(text):
        refuse_value(name, "control_character")
    if "\\" in text:
        refuse_value(name, "backslash")


def _in_segment(name: str, text: str) -> str:
    if not text:
        refuse_value(name, "empty")
    return _in_parameter(name, text)


def _in_parameter(name: str, text: str) -> str:
    """`{;name}`: behind a name, an empty text begins no other segment."""
    _check_in_path(name, text)
    return quote(text, safe="~")


def _in_query(name: str, text: str) -> str:
    if _CONTROL.search(text):
        refuse_value(name, "control_character")
    return quote(text, safe="~")


def _keep(text: str, safe: str) -> str:
    return quote(_LONE_PERCENT.sub("%25", text), safe=safe + "~")


def _bad_segment(path: str) -> str | None:
    """Why a path can't be taken as it is written, or None.

    SECURITY: an upstream may decode more than once, take a backslash for a slash, or drop `;parameters`: the segments
    are judged as such a reader would see them.
    """
    if "//" in path:
        return "empty_segment"
    if "." not in path and "%" not in path:
        return None
    for _ in range(_DECODINGS):
        segments = re.split(r"[/\\]", path)
        if any(segment.partition(";")[0] in {".", ".."} for segment in segments):
            return "dot_segment"
        path = unquote(path)
    return None
