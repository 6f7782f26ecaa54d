"""How long approvals are kept once they have ended, and how much of them with their requests."""

from typing import Final, NamedTuple

import msgspec

from ipc.backends.store import ApprovalRecord
from ipc.settings import ApprovalSettings

LONGEST_CALL_SECONDS: Final = 3700.0
"""A plan that was claimed in its last second may run for an hour (manifest `resource_limits.timeout_seconds`)."""
KEEP_ENDED_SECONDS: Final = 24 * 3600.0 + LONGEST_CALL_SECONDS
"""Counted from `expires_at`: the state is kept for a day after the longest call."""
TIMES_PENDING: Final = 2
"""Ended approvals with their requests take this many times the bytes that may wait, of a principal and in all."""
TRIMMED_AT_ONCE: Final = 10
"""Each may have megabytes."""

_decode = msgspec.json.Decoder(ApprovalRecord).decode


class KeptBounds(NamedTuple):
    """Ended approvals that are older, or that take more bytes, are erased, the oldest first."""

    since: float
    bytes_of_principal: int
    bytes_of_all: int


def bounds_at(now: float, settings: ApprovalSettings) -> KeptBounds:
    """Those in force now."""
    return KeptBounds(
        now - settings.keep_days * 24 * 3600.0,
        settings.max_pending_bytes_per_principal * TIMES_PENDING,
        settings.max_pending_bytes * TIMES_PENDING,
    )


def kept_text(record: ApprovalRecord) -> str:
    """An ended approval as it is kept, JSON text."""
    return msgspec.json.encode(record).decode()


def kept_record(text: str) -> ApprovalRecord | None:
    """From its text; None when that can't be read."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return None
