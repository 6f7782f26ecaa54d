"""The places of one pool, and how many of them an action or a principal may hold at once.

A call that has a worker to itself, and each call that shares one with calls of its action, holds a place. An action
gets at most two thirds of them, a principal three quarters, and less the fewer are free, so that an upstream that hangs
leaves places for other actions, and a principal for other principals. The first call of a principal may go beyond the
share of its action, and the first call of an action beyond that of its principal; the last places are for such calls
alone. Takes no place away from a call that has one.
"""

from typing import Final

from frontend.limits.shares import is_among_the_last

ACTION_SHARE: Final = 2
PRINCIPAL_SHARE: Final = 3
NEWCOMER_SHARE: Final = 5
"""Places that one may hold for each that is free. The last: with the first call of another action or principal."""


class HeldPlaces:
    """Counts the places of one pool by action and by principal; an empty name is not counted."""

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._taken = 0
        self._by_action: dict[str, int] = {}
        self._by_principal: dict[str, int] = {}

    def may_take(self, action: str, principal: str) -> bool:
        """True if a call of this action and principal may take one more place."""
        return self._taken < self._ceiling and self.is_due(action, principal)

    def is_due(self, action: str, principal: str) -> bool:
        """True if such a call may take one more place, or may as soon as one comes free."""
        free = max(self._ceiling - self._taken, 1)
        of_action, of_principal = self._by_action.get(action, 0), self._by_principal.get(principal, 0)
        is_new_action, is_new_principal = bool(action) and not of_action, bool(principal) and not of_principal
        if of_action >= (NEWCOMER_SHARE if is_new_principal else ACTION_SHARE) * free:
            return False
        if of_principal >= (NEWCOMER_SHARE if is_new_action else PRINCIPAL_SHARE) * free:
            return False
        has_one = bool(of_action or of_principal) and not (is_new_action or is_new_principal)
        return not (has_one and is_among_the_last(free, self._ceiling))

    def take(self, action: str, principal: str) -> None:
        """One more is held."""
        self._taken += 1
        for counts, name in ((self._by_action, action), (self._by_principal, principal)):
            if name:
                counts[name] = counts.get(name, 0) + 1

    def give_back(self, action: str, principal: str) -> None:
        """A call gives its place back."""
        self._taken -= 1
        for counts, name in ((self._by_action, action), (self._by_principal, principal)):
            if name:
                counts[name] -= 1
                if not counts[name]:
                    del counts[name]
