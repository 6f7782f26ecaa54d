"""Ids of traces and of the first span of a call. They follow from the ids of call and approval, so that a span, a link
to it and the record of its event name the same one in every process.

A UUIDv7 of the gateway ends with 62 random bits behind two that are never both 0 (ipc/texts/identifiers.py): enough for
the id of a span, which has 8 bytes, is not 0, and is unique within its trace (OTLP, `Span.span_id`).
"""

from typing import Final

SPAN_ID_BYTES: Final = 8
_TRACE_ID_BYTES: Final = 16


def trace_id_of(name: str) -> bytes:
    """The 16 bytes of a trace id of the gateway. Raises ValueError."""
    found = bytes.fromhex(name[4:].replace("-", "")) if name.startswith("trc_") else b""
    if len(found) != _TRACE_ID_BYTES:
        raise ValueError("not a trace id")
    return found


def call_span_id(trace_id: bytes) -> bytes:
    """The id of the span of a call that has ended."""
    return trace_id[-SPAN_ID_BYTES:]


def hold_span_id(approval_id: str) -> bytes:
    """The id of the span of a call that is held, which has another one in the same trace once it ends; empty without an
    approval. Raises ValueError."""
    return bytes.fromhex(approval_id.replace("-", "")[-2 * SPAN_ID_BYTES :])
