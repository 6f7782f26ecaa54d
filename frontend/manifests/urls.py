"""URL templates: RFC 6570 levels 1 and 2 (`{name}`, `{+name}`), rendered so that a value stays in its place.

Guarantees that no value of a request changes scheme, userinfo, host or port, begins another component, or climbs in the
path; the host itself may be one whole variable, and then it must be a domain name. Ambiguous text is refused; no text
is normalised. Never sends a request.
"""

import re
from typing import Any, NoReturn
from urllib.parse import quote, unquote

import msgspec

from frontend.manifests.domains import InvalidDomain, normal_domain
from frontend.manifests.values import refuse_value, scalar_text

MAX_URL_CHARACTERS = 8192
_WHOLE = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?", re.DOTALL)
_AUTHORITY = re.compile(r"(?:\{([^{}]*)\}|([^{}@:\[\]]+))(:[1-9][0-9]{0,4})?")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"\+?[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_PATH_TEXT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_QUERY_TEXT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ENCODED_CONTROL = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_RESERVED_IN_PATH = "!$&'()*+,;=:@/%"
_DECODINGS = 3


class TemplateRefused(ValueError):
    """A template that can't be used, with its fault and the mend."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.mend = mend


class Part(msgspec.Struct, frozen=True):
    """A stretch of a template: literal text, or the variable `name`. `is_reserved`: written `{+name}`."""

    text: str = ""
    name: str | None = None
    is_reserved: bool = False


class UrlTemplate:
    """One compiled template. `host` is None when the host is the variable `host_variable`."""

    def __init__(self, text: str) -> None:
        """Raises TemplateRefused."""
        for expression in _EXPRESSION.findall(text):
            if not _VARIABLE.fullmatch(expression):
                _refuse_expression(expression)
        whole = _WHOLE.fullmatch(text)
        if whole is None:
            raise TemplateRefused(
                "must begin with http:// or https:// and have no fragment", "Write the whole address."
            )
        self.scheme, authority, path, query = whole.group(1), whole.group(2), whole.group(3) or "/", whole.group(4)
        self.host, self.host_variable, self._port = _authority(authority)
        self.path = _parts(path, _PATH_TEXT, "path")
        self.query = _parts(query or "", _QUERY_TEXT, "query")
        if any(part.is_reserved for part in self.query):
            raise TemplateRefused("{+name} stands in the query, where a value could add parameters", "Write {name}.")
        self._may_carry_query = query is None and bool(self.path) and self.path[-1].is_reserved
        literal = "".join("x" if part.name else part.text for part in self.path)
        if _bad_segment(literal):
            raise TemplateRefused("the path has empty or dot segments", "Write the path without them.")

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable, host first."""
        host = (self.host_variable,) if self.host_variable else ()
        return host + tuple(part.name for part in (*self.path, *self.query) if part.name)

    @property
    def needed(self) -> tuple[str, ...]:
        """Variables that must have a value: those of the host and the path. In the query, absent means empty."""
        host = (self.host_variable,) if self.host_variable else ()
        return host + tuple(part.name for part in self.path if part.name)

    def render(self, request: dict[str, Any]) -> tuple[str, str]:
        """(URL, host) for a request. Raises GateError schema_violation naming the variable's place and a rule."""
        host = self.host if self.host is not None else self._host(request)
        path = "".join(
            self._in_path(index, request) if part.name else part.text for index, part in enumerate(self.path)
        )
        climbing = _bad_segment(path.partition("?")[0])
        if climbing:
            refuse_value(self._last_in_path(), climbing)
        query = "".join(_in_query(part.name, request) if part.name else part.text for part in self.query)
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

    def _in_path(self, index: int, request: dict[str, Any]) -> str:
        part = self.path[index]
        name = part.name or ""
        text = _text(name, request)
        if "\\" in text:
            refuse_value(name, "backslash")
        if not part.is_reserved:
            if not text:
                refuse_value(name, "empty")
            return quote(text, safe="~")
        return self._reserved(index, name, text)

    def _reserved(self, index: int, name: str, text: str) -> str:
        """`{+name}`: slashes and percent-triplets stay; one leading slash joins the template's own."""
        if "#" in text:
            refuse_value(name, "fragment")
        if _ENCODED_CONTROL.search(text):
            refuse_value(name, "control_character")
        if "%5c" in text.lower():
            refuse_value(name, "backslash")
        path, mark, query = text.partition("?")
        if mark and not (self._may_carry_query and index == len(self.path) - 1):
            refuse_value(name, "query")
        before = self.path[index - 1] if index else None
        if before is not None and before.text.endswith("/"):
            path = path.removeprefix("/")
        return _keep(path, _RESERVED_IN_PATH) + mark + _keep(query, _RESERVED_IN_PATH + "?")

    def _last_in_path(self) -> str:
        return next((part.name for part in reversed(self.path) if part.name), "")


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
        if expression.startswith("+"):
            raise TemplateRefused(f"the host is {{{expression}}}", "Write {name}: a host has no reserved characters.")
        return None, expression, port or ""
    try:
        normal = normal_domain(host)
    except InvalidDomain as error:
        raise TemplateRefused(f"the host {error}", "Write a domain name such as api.example.com.") from None
    if normal != host:
        raise TemplateRefused("the host is not in the form in which it is compared", f"Write {normal}.")
    return host, None, port or ""


def _parts(text: str, allowed: re.Pattern[str], component: str) -> tuple[Part, ...]:
    """Literals and variables in turn."""
    parts: list[Part] = []
    for index, piece in enumerate(_EXPRESSION.split(text)):
        if index % 2 == 0:
            if not allowed.fullmatch(piece):
                raise TemplateRefused(f"a character in the {component} must be percent-encoded", "Encode it as %XX.")
            if piece:
                parts.append(Part(text=piece))
            continue
        parts.append(Part(name=piece.removeprefix("+"), is_reserved=piece.startswith("+")))
    return tuple(parts)


def _refuse_expression(expression: str) -> NoReturn:
    raise TemplateRefused(
        f"{{{expression}}} is not {{name}} or {{+name}} (RFC 6570 levels 1 and 2)", "Write one of them."
    )


def _text(name: str, request: dict[str, Any]) -> str:
    text = scalar_text(name, request.get(name))
    if _CONTROL.search(text):
        refuse_value(name, "control_character")
    return text


def _in_query(name: str, request: dict[str, Any]) -> str:
    return quote(_text(name, request), safe="~") if request.get(name) is not None else ""


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
