"""The bounds that a process beside a gateway sets on its clients."""

from typing import NamedTuple


class ServingLimits(NamedTuple):
    """Bounds of all connections and of each request; the times are in seconds."""

    max_connections: int
    max_body: int
    """Bytes of any request's body."""
    send_seconds: float
    """For a whole answer to a slow reader."""
    head_seconds: float = 10.0
    """Until a whole head has come, from the connection or from the answer before it: the time to be idle, too."""
    body_seconds: float = 10.0
