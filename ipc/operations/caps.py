"""Questions about caps (ipc/caps.py)."""

import msgspec

from ipc.caps import CapReading, CapsJudged, CapSum, CapUse
from ipc.operations.operation import FrontOperation

LISTED_SUBJECTS = 100
"""Subjects of one cap in an answer."""


class ReadCaps(FrontOperation[CapsJudged], frozen=True):
    """Judge these caps as if this call was made. Reserves nothing."""

    action_id: str
    caps: tuple[CapUse, ...]


class ReadHeldCaps(FrontOperation[tuple[CapReading, ...]], frozen=True):
    """Read how the caps stand that a waiting call has reserved; empty for a call that waits no more."""

    approval_id: str


class CapSums(msgspec.Struct, frozen=True):
    """The amounts of one cap's subjects, by their names."""

    sums: tuple[CapSum, ...]
    last: str | None
    """The last subject that was looked at; None if there are no others behind it."""


class SumCap(FrontOperation[CapSums], frozen=True):
    """Read what one cap has counted for its subjects, at most LISTED_SUBJECTS. A subject without an amount is left
    out."""

    action_id: str
    pointer: str
    per: str
    window_seconds: int
    after: str | None = None
    """Only subjects behind this one, by their names."""
    asker: str = ""
    """The operator that is charged with the time of the read."""
