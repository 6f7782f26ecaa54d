"""ListSegments: sealed segments that have what the ledger had before."""

import msgspec

from ipc.operations.operation import FrontOperation


class SealedSegment(msgspec.Struct, frozen=True):
    """A file with a sealed part of the ledger."""

    segment: str
    """Its name."""
    until: str
    """Time of its last event."""
    last_event_id: str

    def has_room_for(self, identifier: str) -> bool:
        """True if its last event is not older than this id: ids grow with time, whatever they name."""
        return identifier.partition("_")[2] <= self.last_event_id.partition("_")[2]


class ListSegments(FrontOperation[tuple[SealedSegment, ...]], frozen=True):
    """All sealed segments, oldest first."""
