"""Questions about caps (ipc/caps.py)."""

import msgspec

from ipc.caps import CapReading, CapSum, CapUse
from ipc.operations.operation import FrontOperation

LISTED_SUBJECTS = 100
"""Subjects of one cap in an answer."""


class ReadCaps(FrontOperation[tuple[CapReading, ...]], frozen=True):
    """Read how these caps would stand with this call. Reserves nothing."""

    action_id: str
    caps: tuple[CapUse, ...]


class ReadHeldCaps(FrontOperation[tuple[CapReading, ...]], frozen=True):
    """Read how the caps stand that a waiting call has reserved; empty for a call that waits no more."""

    approval_id: str


class CapToSum(msgspec.Struct, frozen=True):
    """One cap of an action."""

    action_id: str
    pointer: str
    per: str
    window_seconds: int


class SumCaps(FrontOperation[tuple[tuple[CapSum, ...], ...]], frozen=True):
    """Read what has been used of each of these caps: the subjects with the largest totals, at most LISTED_SUBJECTS."""

    caps: tuple[CapToSum, ...]
