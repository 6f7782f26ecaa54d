"""The template of an HTTP action, compiled: one request in, one PlannedRequest out.

A string `"{name}"` in the body (or as a whole header value) is replaced by the request's property of that name; in the
body it keeps its type, and a member or item whose property is absent is left out. Guarantees that a value can't add a
header, a line or a member. Credentials are never part of a template.
"""

import re
from typing import Any

import msgspec

from frontend.manifests.manifest import RequestTemplate
from frontend.manifests.urls import UrlTemplate
from frontend.manifests.values import refuse_value, scalar_text
from ipc.plan import PlannedRequest
from ipc.texts.canonical import canonical_bytes

MAX_BODY_BYTES = 1_048_576
MAX_HEADER_CHARACTERS = 1024
FRAMING_HEADERS = frozenset({
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
"""Set by the host alone: their values decide where a message ends."""
CREDENTIAL_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})

_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*)\}")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


class Slot(msgspec.Struct, frozen=True):
    """Where the request's property `name` goes."""

    name: str


class _Absent:
    """The property is not in the request."""


_ABSENT = _Absent()


class CompiledTemplate:
    """Everything of a `template` section that does not depend on the request."""

    def __init__(self, template: RequestTemplate) -> None:
        """Raises TemplateRefused for the URL."""
        self.method = template.method
        self.url = UrlTemplate(template.url_template)
        self._body = compiled(template.body_template)
        self._has_body = template.body_template is not None
        self._headers = tuple((name, compiled(value)) for name, value in template.headers)
        if self._has_body and not any(name.lower() == "content-type" for name, _ in template.headers):
            self._headers += (("Content-Type", "application/json"),)

    def render(self, request: dict[str, Any]) -> tuple[PlannedRequest, str]:
        """(request to send, host). Raises GateError schema_violation naming the property and a rule."""
        url, host = self.url.render(request)
        return PlannedRequest(self.method, url, self._headers_for(request), self._body_for(request)), host

    def _headers_for(self, request: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        headers: list[tuple[str, str]] = []
        for name, value in self._headers:
            if isinstance(value, Slot):
                if request.get(value.name) is None:
                    continue
                text = scalar_text(value.name, request[value.name])
                if len(text) > MAX_HEADER_CHARACTERS or not _HEADER_VALUE.fullmatch(text):
                    refuse_value(value.name, "header_value")
                value = text
            headers.append((name, value))
        return tuple(headers)

    def _body_for(self, request: dict[str, Any]) -> str | None:
        if not self._has_body:
            return None
        value = _filled(self._body, request)
        if value is _ABSENT:
            return None
        body = canonical_bytes(value)
        if len(body) > MAX_BODY_BYTES:
            refuse_value("", "body_too_large")
        return body.decode()


def is_json_type(value: str) -> bool:
    """True for a Content-Type of JSON: its subtype says so, as in application/problem+json. False for a placeholder."""
    subtype = value.partition(";")[0].partition("/")[2]
    return "json" in subtype.lower() and not slots(compiled(value))


def compiled(value: Any) -> Any:
    """A template value with a Slot for each string that is exactly one placeholder."""
    if isinstance(value, str):
        placeholder = _PLACEHOLDER.fullmatch(value)
        return Slot(placeholder.group(1)) if placeholder else value
    if isinstance(value, list):
        return [compiled(item) for item in value]
    if isinstance(value, dict):
        return {name: compiled(item) for name, item in value.items()}
    return value


def slots(value: Any) -> set[str]:
    """Names of all slots in a compiled value."""
    if isinstance(value, Slot):
        return {value.name}
    if isinstance(value, dict):
        value = list(value.values())
    return set().union(*map(slots, value)) if isinstance(value, list) else set()


def embedded(value: Any) -> set[str]:
    """Names that stand in braces inside longer strings or in keys: nothing is put there."""
    if isinstance(value, str):
        return set() if _PLACEHOLDER.fullmatch(value) else set(_PLACEHOLDER.findall(value))
    if isinstance(value, dict):
        keys = {name for key in value for name in _PLACEHOLDER.findall(key)}
        return keys.union(*map(embedded, value.values()))
    return set().union(*map(embedded, value)) if isinstance(value, list) else set()


def _filled(value: Any, request: dict[str, Any]) -> Any:
    if isinstance(value, Slot):
        return request.get(value.name, _ABSENT)
    if isinstance(value, dict):
        members = ((name, _filled(item, request)) for name, item in value.items())
        return {name: item for name, item in members if item is not _ABSENT}
    if isinstance(value, list):
        return [item for item in (_filled(item, request) for item in value) if item is not _ABSENT]
    return value
