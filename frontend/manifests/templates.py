"""The template of an HTTP action, compiled: one request in, one PlannedRequest out.

Guarantees that a value can't add a header, a line or a member (frontend/manifests/bodies.py). A header whose property
is absent is left out. Credentials are never part of a template.
"""

import re
from typing import Any

from msgspec import UNSET, UnsetType

from frontend.manifests.bodies import bodies_of
from frontend.manifests.manifest import RequestTemplate
from frontend.manifests.placeholders import compiled, slots, text_of
from frontend.manifests.urls import UrlTemplate
from frontend.manifests.values import refuse_value
from ipc.plan import INTENT_ID, PlannedRequest, ResponseRules

MAX_HEADER_CHARACTERS = 1024
CREDENTIAL_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})

_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


class CompiledTemplate:
    """Everything of a `template` section that does not depend on the request."""

    def __init__(
        self, template: RequestTemplate, response: ResponseRules | None = None, idempotency_header: str | None = None
    ) -> None:
        """Raises TemplateRefused for the URL."""
        self.method = template.method
        self.url = UrlTemplate(template.url_template)
        self._body = next(iter(bodies_of(template)), None)
        self._headers = tuple((name, compiled(value)) for name, value in template.headers)
        if self._body is not None and not any(name.lower() == "content-type" for name, _ in template.headers):
            self._headers += (("Content-Type", self._body.kind.content_type),)
        self._response: ResponseRules | UnsetType = response or UNSET
        self._idempotency_header: str | UnsetType = idempotency_header or UNSET
        if idempotency_header:
            self._headers += ((idempotency_header, INTENT_ID),)

    def render(self, request: dict[str, Any]) -> tuple[PlannedRequest, str]:
        """(request to send, host). Raises GateError schema_violation naming the property and a rule."""
        url, host = self.url.render(request)
        body = None if self._body is None else self._body.render(request)
        headers = self._headers_for(request)
        return PlannedRequest(self.method, url, headers, body, self._response, self._idempotency_header), host

    def _headers_for(self, request: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        headers: list[tuple[str, str]] = []
        for name, value in self._headers:
            text = text_of(value, request)
            if text is None:
                continue
            if not isinstance(value, str) and (len(text) > MAX_HEADER_CHARACTERS or not _HEADER_VALUE.fullmatch(text)):
                refuse_value(slots(value)[-1].name, "header_value")
            headers.append((name, text))
        return tuple(headers)
