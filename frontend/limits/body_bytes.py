"""How many bytes of request bodies one front holds: a call needs several times the memory of its body.

Principals share them as they share places. Bodies of at most SMALL bytes are not counted: the number of calls bounds
them.
"""

from typing import Final

from frontend.limits.shares import is_among_the_last, may_hold
from frontend.limits.turns import Owners

SMALL: Final = 4096
OF_A_PLACE: Final = 1 << 18
"""Bytes that come with each place in flight: with six times as much a call, its memory is that of a call upstream."""
FEWEST: Final = 8 << 20
"""Eight bodies of the largest size."""
SESSION_SHARE: Final = 2
PRINCIPAL_SHARE: Final = 3


class BodyBytes:
    """Bytes of the bodies of one front's calls, in all, by principal and by session."""

    def __init__(self, places: int, fronts: int = 1) -> None:
        """`places` are those of all fronts together."""
        self._ceiling = max(FEWEST, OF_A_PLACE * places // fronts)
        self._total = 0
        self._held: dict[str, int] = {}

    def take(self, owners: Owners, size: int) -> str | None:
        """Count a body of a principal and its session. Otherwise say why not: the front holds as many bytes as it may
        (`ceiling`), or one of the two does (`share`)."""
        if size <= SMALL:
            return None
        free = self._ceiling - self._total
        by_principal, by_session = (self._held.get(owner, 0) for owner in owners)
        if size > free:
            return "ceiling"
        is_theirs = may_hold(by_principal + size, by_principal, PRINCIPAL_SHARE, free, self._ceiling)
        if by_principal and is_among_the_last(free - size, self._ceiling):
            return "share"
        if not is_theirs or by_session + size > SESSION_SHARE * free:
            return "share"
        self._add(owners, size)
        return None

    def give_back(self, owners: Owners, size: int) -> None:
        """A body that was counted is not held any more."""
        if size > SMALL:
            self._add(owners, -size)

    def settle(self, owners: Owners, counted: int, size: int) -> None:
        """A body that was counted with more bytes than it has."""
        self.give_back(owners, counted)
        if size > SMALL:
            self._add(owners, size)

    def _add(self, owners: Owners, size: int) -> None:
        self._total += size
        for owner in owners:
            self._held[owner] = self._held.get(owner, 0) + size
            if not self._held[owner]:
                del self._held[owner]
