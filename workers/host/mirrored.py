"""Arguments of a tool that its input schema wants mirrored in headers (`x-mcp-header`, MCP 2026-07-28).

Servers compare such a header with the message and refuse a call in which they differ.
"""

import base64
import re
from collections.abc import Iterator
from typing import Any

from workers.host.wire import Headers

_SAFE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_ENCODED = re.compile(r"=\?base64\?.*\?=")


def mirrored_headers(schema: Any, arguments: Any) -> Headers:
    """The headers of these arguments; an argument that is absent has none."""
    return tuple((f"mcp-param-{token}".lower(), _encoded(value)) for token, value in _marked(schema, arguments))


def _marked(schema: Any, arguments: Any) -> Iterator[tuple[str, str]]:
    """Each marked property that the arguments have: (its token, its value as text)."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not isinstance(arguments, dict):
        return
    for name, inner in properties.items():
        value = arguments.get(name)
        token = inner.get("x-mcp-header") if isinstance(inner, dict) else None
        if isinstance(token, str) and isinstance(value, bool):
            yield token, "true" if value else "false"
        elif isinstance(token, str) and isinstance(value, str | int | float):
            yield token, str(value)
        yield from _marked(inner, value)


def _encoded(text: str) -> str:
    """The text, in base64 where a header can't have it as it is."""
    if _SAFE.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
