"""Supervisor and notary: a sealed segment that was written, and the ledger that is cut at its end."""

import msgspec

from ipc.messages.message import Message


class CopiedSegment(msgspec.Struct, frozen=True):
    """Printed by the program that writes a segment while the gateway runs."""

    path: str
    sealed: str
    """JSON for the notary: where the segment begins and ends (`SealedRange` in notary/operations/cutting.py)."""
    told: str
    """A sentence for people."""


class CutLedger(Message, frozen=True):
    """Cut the ledger at the end of this segment, which is durable; its rows are deleted in the background."""

    request_id: str
    sealed: str
    """See CopiedSegment. Empty: nothing is cut, and the answer comes once earlier questions are answered."""


class LedgerCut(Message, frozen=True):
    """`left` rows are still to be deleted. With `problem` nothing was cut, or it is not known."""

    request_id: str
    left: int = 0
    problem: str | None = None
    is_refused: bool = False
    """The ledger is not cut there, and has all of it."""
