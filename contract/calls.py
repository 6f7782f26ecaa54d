"""An agent's own calls, as it lists them to learn what became of them."""

from typing import Literal

from .noun import LEFT_OUT, NeverNull, Noun

CallState = Literal["running", "executed", "failed", "held", "denied", "expired", "refused", "unknown"]


class RecentCall(Noun, frozen=True, kw_only=True):
    """One call."""

    trace_id: str
    action_id: NeverNull[str] = LEFT_OUT
    """Left out where no action has the id that was called."""
    request_hash: NeverNull[str] = LEFT_OUT
    """`sha256:<hex>` of the canonical request; left out where the call was refused before there was one."""
    state: CallState
    """`denied` by policy or a person; `refused` for everything else before it was dispatched; `unknown`: it was
    dispatched, and how it ended is not known."""
    error: NeverNull[str] = LEFT_OUT
    receipt_id: NeverNull[str] = LEFT_OUT
    approval_id: NeverNull[str] = LEFT_OUT
    summary: NeverNull[str] = LEFT_OUT
    """The line that the manifest's `summary` makes of kept values; left out where the manifest has none."""
    at: str
    """The time of its evidence: when it ended, was held or was refused; of one without an end, when it began."""


class RecentCalls(Noun, frozen=True, kw_only=True):
    """Calls of one principal and key, the newest first."""

    calls: tuple[RecentCall, ...]
    next: str | None
    """Where the next page begins (`after`); null at the end. A page may be short and not be the last one: each looks
    at 2,000 events of the principal at most, and one that finds none of this key in so many is the last."""
