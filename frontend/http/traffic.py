"""An observer of connections, and of answers that the HTTP skin gives by itself.

The skin itself counts nothing.
"""

from typing import Protocol


class Traffic(Protocol):
    """Called for each event of traffic; never waits, never raises. `listener` is client, admin or merged."""

    def opened(self, listener: str) -> None:
        """A connection was accepted and is served."""

    def closed(self, listener: str) -> None:
        """A connection that was opened has ended."""

    def turned(self, listener: str) -> None:
        """A connection was turned away for want of room."""

    def cut(self, listener: str) -> None:
        """A connection was closed with its answer: the client did not take it in time, or it took others' room."""

    def answered_itself(self, status: int) -> None:
        """The skin answered by itself: the bytes were no request, or the handler failed."""


class NullTraffic:
    """Ignores everything."""

    def opened(self, listener: str) -> None:
        """See Traffic."""

    def closed(self, listener: str) -> None:
        """See Traffic."""

    def turned(self, listener: str) -> None:
        """See Traffic."""

    def cut(self, listener: str) -> None:
        """See Traffic."""

    def answered_itself(self, status: int) -> None:
        """See Traffic."""
