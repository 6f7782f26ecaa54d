"""The idempotency key of a call, as the MCP client names it: in `_meta` of the request, or else in its HTTP header.

A host that lost an answer repeats the same call under the same key, also after this server was started anew: it runs at
most once. JSON-RPC ids can't do that, as each client counts from the beginning.
"""

import re
from typing import Any

from mcp.server import ServerRequestContext
from mcp_types import CallToolRequestParams

from gateway_client.calling.idempotency import HEADER, key_header
from gateway_client.errors import Invalid

META = "action-gateway/idempotency_key"
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_TOKEN = re.compile(r"[A-Za-z0-9._-]+")
_ESCAPED = re.compile(r'\\(["\\])')


def key_of(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> str | None:
    """The key, or None where the request names none. Raises Invalid invalid_idempotency_key."""
    key = dict(params.meta or {}).get(META, _key_in(context))
    if key is None:
        return None
    try:
        if not isinstance(key, str):
            raise ValueError("an idempotency key is text")
        key_header(key)
    except ValueError as error:
        raise Invalid("invalid_idempotency_key", reason=str(error)) from None
    return key


def _key_in(context: ServerRequestContext[Any, Any]) -> str | None:
    """The key in the header: a quoted string or a token, as the gateway reads it. Raises Invalid."""
    headers = getattr(context.request, "headers", None)
    values = [] if headers is None else headers.getlist(HEADER)
    if not values:
        return None
    value = values[0].strip(" \t")
    if len(values) == 1 and (quoted := _QUOTED.fullmatch(value)):
        return _ESCAPED.sub(r"\1", quoted[1])
    if len(values) == 1 and _TOKEN.fullmatch(value):
        return str(value)
    raise Invalid("invalid_idempotency_key", reason=f"{HEADER} is not one quoted string or token")
