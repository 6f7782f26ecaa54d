"""The walk along the audit log as operators read it (docs/contract.md, "Admin socket")."""

from typing import Literal

from .noun import NeverNull, Noun

KeptState = Literal["whole", "erased", "missing"]
"""`missing`: a value is gone, or is not the one that the event commits to, and no event is said to have erased it."""


class ChainReport(Noun, frozen=True, kw_only=True):
    """The result of a walk along the whole chain and its tree."""

    intact: bool
    events_checked: int
    """Events found in order; the broken one is not among them."""
    broken_at: str | None
    """Id of the first event that does not fit; of the last one left when those after it are gone."""
    total_events: NeverNull[int]
    """Events that the ledger says it has."""
    verified_links: NeverNull[int]
    """`prev_hash` values that are the hash of the event before."""
    reason: str | None
    """The fault, for people."""
    head: str | None = None
    """`sha256:<hex>` of the last event that was found in order."""
    size: NeverNull[int] = 0
    """Leaves of the tree of events and intents; 0 when something is broken."""
    root: str | None = None
    """Root of that tree (RFC 6962), base64; null when something is broken."""
    checkpoint: str | None = None
    """The newest signed checkpoint, which that tree continues; null when something is broken."""
