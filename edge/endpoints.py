"""The requests that agents on other hosts may send: the endpoints of the client socket, and no others.

A request without a row here never reaches the gateway by way of the edge.
"""

import re
from typing import Final, NamedTuple

MAX_QUERY: Final = 8192
READ_SECONDS: Final = 30.0
CALL_SECONDS: Final = 600.0
"""An action runs before its call is answered."""
_SEGMENT: Final = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._~:@!$&'()*+,;=%-]{1,512}"
"""Raw, as the client sends it and as its proof has it. Dots alone would name another folder."""
_QUERY: Final = re.compile(rb"[!-~]{0,%d}" % MAX_QUERY)


class EdgeEndpoint(NamedTuple):
    """One row."""

    method: str
    path: re.Pattern[str]
    seconds: float
    """From the request's last byte to the first one of the answer."""


def _row(method: str, path: str, seconds: float = READ_SECONDS) -> EdgeEndpoint:
    parts = (_SEGMENT if part.startswith("{") else re.escape(part) for part in path.split("/"))
    return EdgeEndpoint(method, re.compile("/".join(parts)), seconds)


# fmt: off
EDGE_ENDPOINTS: Final = (
    _row("GET",  "/healthz"),
    _row("GET",  "/readyz"),
    _row("GET",  "/openapi.json"),
    _row("POST", "/v1/leases"),
    _row("GET",  "/.well-known/jwks.json"),
    _row("GET",  "/v1/actions"),
    _row("GET",  "/v1/actions/{action_id}"),
    _row("GET",  "/v1/actions/{action_id}/schema/request"),
    _row("POST", "/v1/actions/{action_id}/execute", CALL_SECONDS),
    _row("POST", "/v1/actions/{action_id}/preview"),
    _row("GET",  "/v1/calls"),
    _row("GET",  "/v1/approvals/{approval_id}/poll"),
    _row("GET",  "/v1/receipts/{receipt_id}"),
)
# fmt: on


def edge_endpoint(method: str, path: bytes, query: bytes) -> EdgeEndpoint | None:
    """The row of a request; None where nothing is forwarded. Absolute targets and encoded slashes match no row."""
    if _QUERY.fullmatch(query) is None or b"%2f" in path.lower() or b"%5c" in path.lower():
        return None
    text = path.decode("latin-1")
    return next((one for one in EDGE_ENDPOINTS if one.method == method and one.path.fullmatch(text)), None)
