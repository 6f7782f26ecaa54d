"""How often a front asks its dependencies how they are, and how long it waits for what they say. All in seconds.

Holds values only; frontend/compose.py hands them on.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HealthDeadlines:
    """The waits of frontend/health/, in seconds."""

    round_seconds: float = 1.0
    """Between two questions to a dependency, unless its answer is wanted sooner."""
    overdue_seconds: float = 2.0
    """A dependency that has not answered for this long is down, whatever it said before."""
    proxy_pause_seconds: float = 3.0
    """Between two questions to a proxy that answers: each may be a line in its log."""
