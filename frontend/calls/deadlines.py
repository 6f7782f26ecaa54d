"""How long calls and approvals take over what is no part of a provider's work, and how often a call is tried.

Holds values only; frontend/compose.py hands them on. What a call itself may take is in its plan.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallDeadlines:
    """The waits of frontend/calls/, in seconds, and its bound on tries."""

    clean_up_seconds: float = 12.0
    """What a cancelled call may take to leave its evidence: beyond the deadline of one operation."""
    settle_seconds: float = 3.0
    """What an answer waits for the egress proxy's list to be narrow again, when a call was let through."""
    upkeep_seconds: float = 1.0
    """Between two rounds of upkeep: holds that expire, claims that no task settles."""
    refusal_seconds: float = 60.0
    """Between two events of callers who have proven nothing, for each user and code."""
    lines_seconds: float = 10.0
    """In which refusals of a user with a code have few lines of the log (frontend/telemetry/lines.py)."""
    max_workers: int = 4
    """Workers that a call tries: each of them ended, or was too long at another call, before it began this one."""
