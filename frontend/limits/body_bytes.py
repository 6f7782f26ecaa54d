"""How many bytes of request bodies one front holds: a call needs several times the memory of its body.

Principals share them as they share places. Bodies of at most SMALL bytes are not counted: the number of calls bounds
them.
"""

from typing import Final

from frontend.limits.shares import may_hold

SMALL: Final = 4096
OF_A_PLACE: Final = 1 << 18
"""Bytes that come with each place in flight: with six times as much a call, its memory is that of a call upstream."""
FEWEST: Final = 8 << 20
"""Eight bodies of the largest size."""
PRINCIPAL_SHARE: Final = 3


class BodyBytes:
    """Bytes of the bodies of one front's calls, in all and by principal."""

    def __init__(self, places: int, fronts: int = 1) -> None:
        """`places` are those of all fronts together."""
        self._ceiling = max(FEWEST, OF_A_PLACE * places // fronts)
        self._total = 0
        self._held: dict[str, int] = {}

    def take(self, principal: str, size: int) -> str | None:
        """Count a body. Otherwise say why not: the front holds as many bytes as it may (`ceiling`), or the principal
        does (`share`)."""
        if size <= SMALL:
            return None
        free, held = self._ceiling - self._total, self._held.get(principal, 0)
        if size > free:
            return "ceiling"
        if not may_hold(held + size, held, PRINCIPAL_SHARE, free, self._ceiling):
            return "share"
        self._total += size
        self._held[principal] = held + size
        return None

    def give_back(self, principal: str, size: int) -> None:
        """A body that was counted is not held any more."""
        if size <= SMALL:
            return
        self._total -= size
        self._held[principal] -= size
        if not self._held[principal]:
            del self._held[principal]
