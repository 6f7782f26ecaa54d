"""Calls that have ended and wait for the exporter: bounded, and shared fairly among principals.

While there is room each is kept. Without room a principal keeps its equal part: one with more loses its own. Taken in
turns of one for each principal, so that a flood of one delays no other's.
"""

from collections import deque

from ipc.messages.exporting import ExportedCall


class CallOutbox:
    """At most `most` calls. Neither method waits or raises."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_principal: dict[str, deque[ExportedCall]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, call: ExportedCall) -> ExportedCall | None:
        """Keep a call; return the one that has no room: this one, or an older one of a principal with more."""
        own = self._by_principal.setdefault(call.principal, deque())
        lost = None
        if self._count >= self._most:
            part = self._most // len(self._by_principal)
            if len(own) >= part:
                if not own:
                    del self._by_principal[call.principal]
                return call
            lost = max(self._by_principal.values(), key=len).popleft()
            self._count -= 1
        own.append(call)
        self._count += 1
        return lost

    def take(self, most: int) -> tuple[ExportedCall, ...]:
        """Up to so many, those of each principal in their order."""
        taken: list[ExportedCall] = []
        while self._count and len(taken) < most:
            principal = next(iter(self._by_principal))
            queue = self._by_principal.pop(principal)
            taken.append(queue.popleft())
            self._count -= 1
            if queue:
                self._by_principal[principal] = queue
        return tuple(taken)
