"""The kinds of body that a template can have: JSON, a form, or text. Each is a record of BODY_KINDS.

Guarantees that a value can't add a member to JSON or a field to a form. Text holds values as they are.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import msgspec

from frontend.manifests.manifest import RequestTemplate
from frontend.manifests.placeholders import ABSENT, Compiled, Slot, Text, compiled, filled, slots, text_of
from frontend.manifests.values import refuse_value, scalar_text
from ipc.texts.canonical import canonical_bytes

MAX_BODY_BYTES = 1_048_576
_FORM_TYPE = re.compile(r"application/x-www-form-urlencoded(?:; *charset=utf-8)?", re.IGNORECASE)
_TEXT_TYPE = re.compile(r"text/(?!html|xml)[a-z0-9.-]+(?:; *charset=utf-8)?", re.IGNORECASE)


class BodyKind(msgspec.Struct, frozen=True):
    """A kind of body: the field of `template` that declares it, and its rules."""

    field: str
    content_type: str
    """Sent where the template's headers have none."""
    says: str
    """Completes `template.FIELD makes …`."""
    fits: Callable[[str], bool]
    """True for a Content-Type of this kind."""
    render: Callable[[Compiled, dict[str, Any]], str | None]
    """The body for a request, None for no body. Raises GateError schema_violation."""


class CompiledBody(msgspec.Struct, frozen=True):
    """The body of one template."""

    kind: BodyKind
    value: Compiled

    def render(self, request: dict[str, Any]) -> str | None:
        """The body for a request, None for no body. Raises GateError schema_violation."""
        body = self.kind.render(self.value, request)
        if body is not None and len(body.encode()) > MAX_BODY_BYTES:
            refuse_value("", "body_too_large")
        return body


def bodies_of(template: RequestTemplate) -> list[CompiledBody]:
    """The bodies that a template declares: at most one in a manifest without problems."""
    values = ((kind, getattr(template, kind.field)) for kind in BODY_KINDS)
    return [CompiledBody(kind, compiled(value)) for kind, value in values if value is not None]


def _is_json_type(value: str) -> bool:
    """True if the subtype says so, as in application/problem+json. False for a placeholder."""
    subtype = value.partition(";")[0].partition("/")[2]
    return "json" in subtype.lower() and not slots(compiled(value))


def _is_form_type(value: str) -> bool:
    return _FORM_TYPE.fullmatch(value) is not None


def _is_text_type(value: str) -> bool:
    """SECURITY: no JSON, XML or HTML: values are not escaped, and could add members or elements."""
    return _TEXT_TYPE.fullmatch(value) is not None


def _json(value: Compiled, request: dict[str, Any]) -> str | None:
    whole = filled(value, request)
    return None if whole is ABSENT else canonical_bytes(whole).decode()


def _form(value: Compiled, request: dict[str, Any]) -> str:
    return urlencode(
        [(name, text) for name, item in value.items() for one in _items(item) for text in _form_texts(one, request)]
    )


def _text(value: Compiled, request: dict[str, Any]) -> str:
    for slot in slots(value):
        if request.get(slot.name) is None:
            refuse_value(slot.name, "required")
    return text_of(value, request) or ""


def _items(value: Compiled) -> list[Compiled]:
    return value if isinstance(value, list) else [value]


def _form_texts(value: Compiled, request: dict[str, Any]) -> Iterator[str]:
    """The values of one field, which is repeated for each item of a list."""
    if isinstance(value, Slot):
        found = request.get(value.name)
        yield from (scalar_text(value.name, item) for item in _items(found) if item is not None)
    elif isinstance(value, Text):
        text = text_of(value, request)
        if text is not None:
            yield text
    else:
        yield scalar_text("", value)


BODY_KINDS = (
    BodyKind("body_template", "application/json", "JSON", _is_json_type, _json),
    BodyKind("body_form", "application/x-www-form-urlencoded", "a form", _is_form_type, _form),
    BodyKind("body_text", "text/plain; charset=utf-8", "plain text", _is_text_type, _text),
)
