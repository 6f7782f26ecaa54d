"""The order among callers that wait for workers: least recently served first.

A call belongs to several owners at once, the larger group first (its principal, then its session): turns go round
among principals, and for each of them round among its sessions. Remembers only owners that wait or are served.
"""

Owners = tuple[str, ...]


class ServiceOrder:
    """The order of service in one pool. `begin` a call, `serve` it once it has a worker, and `end` it."""

    def __init__(self) -> None:
        self._count = 0
        self._last: dict[str, int] = {}
        self._calls: dict[str, int] = {}

    def __len__(self) -> int:
        """Owners that are remembered."""
        return len(self._calls)

    def begin(self, owners: Owners) -> None:
        """A call of these owners wants a worker."""
        for owner in owners:
            self._calls[owner] = self._calls.get(owner, 0) + 1

    def last(self, owners: Owners) -> list[int]:
        """The smaller, the longer ago they were served: for sorting those who wait."""
        return [self._last.get(owner, 0) for owner in owners]

    def serve(self, owners: Owners) -> None:
        """A call that has begun has a worker."""
        self._count += 1
        for owner in owners:
            self._last[owner] = self._count

    def end(self, owners: Owners) -> None:
        """A call is over, or has given up waiting."""
        for owner in owners:
            left = self._calls[owner] = self._calls[owner] - 1
            if not left:
                del self._calls[owner]
                self._last.pop(owner, None)
