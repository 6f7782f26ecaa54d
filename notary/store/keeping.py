"""For how long approvals are kept."""

from typing import Final

LONGEST_CALL_SECONDS: Final = 3700.0
"""A plan that was claimed in its last second may run for an hour (manifest `resource_limits.timeout_seconds`)."""
KEEP_ENDED_SECONDS: Final = 24 * 3600.0 + LONGEST_CALL_SECONDS
"""Counted from `expires_at`: the record is kept for a day after the longest call."""
