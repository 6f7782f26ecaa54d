"""Operations of the exporter: it reads audit events, in the order in which they stand in the ledger."""

from typing import Annotated, ClassVar, Final

import msgspec

from ipc.operations.operation import ExporterOperation

EXPORTED, DROPPED, SKIPPED = "exported", "dropped", "skipped"
"""The outcomes of events: the collector took them, it refused them, or the ledger did not hold them any more."""
MOST_EVENTS: Final = 512
"""In one answer."""
MOST_EVENT_BYTES: Final = 1024 * 1024
"""In one answer that has more than one event."""


class EventPosition(msgspec.Struct, frozen=True):
    """A place in the chain: the number of an event and its hash; 0 and None before the first."""

    seq: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    hash: str | None = None


class FollowingEvents(msgspec.Struct, frozen=True):
    """Events as they are stored, those that follow `after` without a gap."""

    after: EventPosition
    events: list[bytes]


class NextEvents(ExporterOperation[FollowingEvents], frozen=True):
    """Read the events behind this position, which the exporter has settled; None: it has just started, and goes on
    where the one before ended. The counts are its own since it started."""

    asker: ClassVar[str] = "exporter"
    after: EventPosition | None = None
    exported: int = 0
    dropped: int = 0


class EventExport(msgspec.Struct, frozen=True):
    """How far the export of events has come."""

    waiting: int
    """Events in the ledger that are not settled."""
    events: dict[str, int]
    """Outcome -> events, since exporter or notary started."""
    changes: int
    """How often the ledger did not continue the one whose events were exported, since the notary started."""
