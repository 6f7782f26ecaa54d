"""Which proofs may have been used in the last minutes, in memory: a proof that is ruled out need not be looked up.

Errs to one side alone: a proof that was used and still counts is never ruled out. Until a notary has lived for as long
as proofs are remembered, and while the clock stands behind what it told before, it rules out none.
"""

from typing import Final

from notary.store.proofs import BUCKET_SECONDS, REPLAY_SECONDS

_PLACES: Final = 1 << 21
"""A byte each. With a hundred proofs a second one in a hundred that is new is looked up."""
_MINUTES: Final = 255
"""A place shows the same minute again after this many, and then rules out nothing for a while."""
_COUNTED: Final = int(REPLAY_SECONDS // BUCKET_SECONDS) + 1


class RecentProofs:
    """The memory of one notary, which alone writes proofs to its ledger."""

    def __init__(self) -> None:
        self._minutes = bytearray(_PLACES)
        """In which minute a proof was noted last whose hash this place has; 0: none was."""
        self._complete_at = float("inf")
        """From then on no proof counts that was used before this began."""
        self._latest = 0.0

    def rules_out(self, key: str, now: float) -> bool:
        """True for a proof that was certainly not used in the time that counts (Unix seconds)."""
        if now < self._complete_at or now < self._latest:
            return False
        noted = self._minutes[hash(key) % _PLACES]
        return not noted or (_shown(now) - noted) % _MINUTES > _COUNTED

    def note(self, key: str, now: float) -> None:
        """It is used now, or may be."""
        if self._latest == 0.0:
            self._complete_at = now + REPLAY_SECONDS + BUCKET_SECONDS
        self._latest = max(self._latest, now)
        self._minutes[hash(key) % _PLACES] = _shown(self._latest)


def _shown(moment: float) -> int:
    """The minute as a place shows it."""
    return int(moment // BUCKET_SECONDS) % _MINUTES + 1
