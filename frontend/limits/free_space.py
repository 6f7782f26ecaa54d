"""Room for evidence: whether the ledger's volume has what calls need that are about to begin.

Hears once a second what is free (frontend/health/dependencies.py) and keeps the last word: a ledger that can't be asked
refuses calls by itself. Calls that run already end as they would, since the bound leaves room for their evidence;
operators may go on refusing, revoking and draining.
"""

from frontend.errors import GateError


class FreeSpace:
    """The gate of one front. `least`: bytes that must be free for a call to begin; 0 lets all begin."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._free: int | None = None

    @property
    def is_short(self) -> bool:
        """Too little is free."""
        return self._free is not None and self._free < self._least

    @property
    def least(self) -> int:
        """The bound, in bytes."""
        return self._least

    def heard(self, free: int | None) -> bool:
        """Note the free bytes; None if they are unknown. Return True when calls begin again, or stop."""
        was_short, self._free = self.is_short, free
        return was_short != self.is_short

    def refuse_when_short(self) -> None:
        """Raises GateError ledger_full."""
        if self.is_short:
            raise GateError("ledger_full")
