"""How long a front waits for its workers, and how often it looks at them. All in seconds.

Holds values only; frontend/compose.py hands them to the pools. The deadline of a call is not among them: it comes with
the call's plan.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolDeadlines:
    """The waits of frontend/pool/, in seconds."""

    greeting_seconds: float = 10.0
    """From attachment to WorkerReady."""
    grace_seconds: float = 2.0
    """Beyond the call's own deadline, which the worker's clock enforces."""
    give_seconds: float = 15.0
    """For a worker to take a large plan: longer than a notary may be silent."""
    ask_seconds: float = 5.0
    """A worker that was asked for and has not come by then is asked for again."""
    leave_seconds: float = 5.0
    """A worker that was retired and is not gone by then is killed."""
    tend_seconds: float = 1.0
    """Between two looks at idle workers; less where they retire sooner than that."""
    min_tend_seconds: float = 0.05
    """Between two such looks at least."""
