"""How long a front waits for the egress proxy, and how often it looks at the proxy's list. All in seconds.

Holds values only; frontend/compose.py hands them on. Workers have their own patience with the proxy.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EgressDeadlines:
    """The waits of frontend/egress/, in seconds."""

    ask_seconds: float = 2.0
    """For the proxy to answer, all tries and pauses included."""
    pauses: tuple[float, ...] = (0.05, 0.25)
    """Before each further try while the port is closed: a squid that reads its configuration again closes it for some
    milliseconds, and does so whenever live sync has written its list."""
    look_seconds: float = 1.0
    """Between two looks at whether the list of live sync is what it should be."""
