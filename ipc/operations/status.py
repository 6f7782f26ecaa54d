"""Operations that read how the store and the ledger are."""

import msgspec

from ipc.operations.exporting import EventExport
from ipc.operations.operation import FrontOperation
from ipc.operations.witnesses import WitnessedCheckpoint


class StoreStatus(msgspec.Struct, frozen=True):
    """How many approvals are pending, since when the oldest is (Unix seconds), and the epoch in force."""

    pending: int
    oldest: float | None
    epoch: int


class ReadStore(FrontOperation[StoreStatus], frozen=True):
    """Read how the store is."""


class ClockTold(msgspec.Struct, frozen=True):
    """A clock is wrong: the cause, and the Unix time from which it is right by itself; None if unknown."""

    cause: str
    until: float | None


class LedgerStatus(msgspec.Struct, frozen=True):
    """Unresolved intents; waiting deliveries, by endpoint; the last checkpoint, None before the first."""

    unresolved: int
    waiting: dict[str, int]
    attempts: dict[str, dict[str, int]]
    """Endpoint -> outcome -> attempts since the notary started."""
    drops: dict[str, dict[str, int]]
    """Endpoint -> reason -> deliveries that will never arrive, since the notary started."""
    oldest_unresolved: float | None
    """When the oldest intent was dispatched that no worker is at work on any more (Unix seconds)."""
    checkpoint: WitnessedCheckpoint | None = None
    free_bytes: int | None = None
    """Free space of the ledger's volume for an unprivileged process; None where it is unknown."""
    clock_error: ClockTold | None = None
    """Why the notary tells no time."""
    export: EventExport | None = None
    """How far the export of events has come; None where no exporter asks."""


class ReadLedger(FrontOperation[LedgerStatus], frozen=True):
    """Read how the ledger is. After a failure it writes a probe value first."""
