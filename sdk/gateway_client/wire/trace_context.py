"""The caller's own trace, in the form of W3C Trace Context: sent with its calls, so that their spans link to it."""

import re
from contextvars import ContextVar

from gateway_client.wire.exchange import Headers

HEADER = "traceparent"
_FORM = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

caller_trace: ContextVar[str | None] = ContextVar("caller_trace", default=None)
"""The value of the header, for calls of this task."""


def first_traceparent(*found: object) -> str | None:
    """The first of these that has the header's form."""
    return next((one for one in found if isinstance(one, str) and _FORM.fullmatch(one)), None)


def trace_headers() -> Headers:
    """The header of a call of this task; none without a trace."""
    trace = caller_trace.get()
    return () if trace is None else ((HEADER, trace),)
