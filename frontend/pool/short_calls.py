"""Which calls are over in a moment, by what the last ones of their kind took.

A hint for where to run a call, never whether it may: a kind that was brief and no longer is costs those behind it the
50 ms after which they are taken back (docs/decisions/workers.md, "Pools"). Fuel tells most, because a busy machine does
not change it; the time is held against calls whose work the guest does not do itself.
"""

from collections import OrderedDict
from typing import Final

BRIEF_FUEL: Final = 500_000
"""A call that uses less, in its worker, waits behind others that do rather than wake one more worker."""
BRIEF_US: Final = 10_000
"""It takes less than this, too."""
MAX_KINDS: Final = 4096
_KEPT: Final = 0.75


class ShortCallEstimate:
    """Estimates how much a call of each kind takes. Keeps the kinds that were seen last."""

    def __init__(self) -> None:
        self._expected: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        """Kinds that are remembered."""
        return len(self._expected)

    def is_brief(self, kind: str) -> bool:
        """True where all of the last calls were; nothing is known of a kind at first."""
        return self._expected.get(kind, 1.0) < 1.0

    def note(self, kind: str, microseconds: int, fuel: int | None) -> None:
        """A call of this kind took so much; None: unknown. A long call is forgotten after a few
        brief ones."""
        share = 1.0 if fuel is None else max(microseconds / BRIEF_US, fuel / BRIEF_FUEL)
        # Not more than a few times too much: one call of a minute must not be remembered for a hundred.
        self._expected[kind] = min(max(share, self._expected.pop(kind, 0.0) * _KEPT), 4.0)
        if len(self._expected) > MAX_KINDS:
            self._expected.popitem(last=False)
