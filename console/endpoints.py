"""The requests that the page may send to the gateway: the table of all that is forwarded. Reads like the contract.

A request without a row here never reaches the gateway by way of the console, no matter who sends it.
"""

import re
from typing import Final, NamedTuple

MAX_QUERY: Final = 2048
MAX_BODY: Final = 16_384
"""A decision with its signature (8192 at most) and a reason."""
READ_SECONDS: Final = 30.0
CALL_SECONDS: Final = 600.0
"""An approved call runs before it is answered."""
VERIFY_SECONDS: Final = 630.0
"""The gateway gives a walk along the whole chain ten minutes."""
_IDENTIFIER: Final = r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}"
"""Raw, as the page sends it and as its proof has it: nothing here is percent-encoded."""


class ForwardedEndpoint(NamedTuple):
    """One row. `seconds` is for all of it, from the wait for a place to the end of the answer."""

    method: str
    path: re.Pattern[str]
    is_proved: bool
    """The page sends an API key and a proof; otherwise neither is forwarded."""
    seconds: float
    is_rare: bool
    """Asked by hand and slow: one at a time, so that it never takes the places of the others."""


def _row(
    method: str, path: str, *, is_proved: bool = True, seconds: float = READ_SECONDS, is_rare: bool = False
) -> ForwardedEndpoint:
    pattern = re.compile(re.escape(path).replace(re.escape("{id}"), _IDENTIFIER))
    return ForwardedEndpoint(method, pattern, is_proved, seconds, is_rare)


# fmt: off
ENDPOINTS: Final = (
    _row("GET",  "/v1/admin/status"),
    _row("GET",  "/v1/approvals"),
    _row("GET",  "/v1/approvals/{id}"),
    _row("POST", "/v1/approvals/{id}/approve", seconds=CALL_SECONDS),
    _row("POST", "/v1/approvals/{id}/deny"),
    _row("GET",  "/v1/audit/events"),
    _row("GET",  "/v1/audit/summary"),
    _row("GET",  "/v1/audit/verify", seconds=VERIFY_SECONDS, is_rare=True),
    _row("GET",  "/v1/receipts/{id}"),
    _row("GET",  "/v1/admin/policy"),
    _row("GET",  "/v1/admin/policy/{id}"),
    _row("GET",  "/v1/admin/policy/thresholds"),
    _row("GET",  "/v1/admin/policy/caps"),
    _row("POST", "/v1/admin/policy/explain"),
    _row("GET",  "/v1/admin/standing"),
    _row("GET",  "/v1/admin/sessions"),
    _row("POST", "/v1/admin/sessions/{id}/revoke"),
    _row("GET",  "/v1/actions", is_proved=False),
    _row("GET",  "/v1/actions/{id}", is_proved=False),
)
# fmt: on


def endpoint_for(method: str, path: str) -> ForwardedEndpoint | None:
    """The row of a request; None where nothing is forwarded."""
    return next((one for one in ENDPOINTS if one.method == method and one.path.fullmatch(path)), None)
