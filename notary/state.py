"""State of the notary between two units: keys, clock, the head of the chain, the epoch, and calls under way."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ipc.limits import MAX_NOTARY_FRAME
from ipc.process.clock import TimeSource
from ipc.settings import Settings
from notary.backends.sqlite import FileLimits
from notary.database import Database, OpenTransaction
from notary.event_export import EventExports
from notary.ledger.head import Head
from notary.ledger.intents import OpenIntent
from notary.ledger.known_proofs import KnownProofs
from notary.ledger.outbox import Backlog
from notary.ledger.page_ring import SLOTS
from notary.ledger.refused import Key, RefusalCount
from notary.ledger.settling import Unsettled
from notary.ledger.witnesses import ConfiguredWitnesses
from notary.signing.rotation import Signers
from notary.store.cap_room import CapRoom
from notary.store.contract import Store
from notary.store.in_ledger import SqliteStore
from notary.tree.checkpoint import Checkpoint

if TYPE_CHECKING:  # the client takes half a second to import, and most notaries have none
    from notary.backends.redis.stores import Stores

MAX_KNOWN_INTENTS = 16_384
"""Open intents kept in memory; others are read from the database when they are closed."""


class NotaryLimits(msgspec.Struct, frozen=True):
    """Deadlines and bounds of one notary."""

    database: FileLimits = FileLimits()
    begun_seconds: float = 0.05
    """If a call takes longer, the notary tells its front that it has begun."""
    quiet_seconds: float = 0.05
    """Without a unit for so long, what the journal holds is settled: nothing waits for the processor then."""
    idle_seconds: float = 0.5
    """Without work for so long, the log of the database is copied into its file."""
    remembered_seconds: float = 30.0
    """No front asks again for what it gave up, which is after ten seconds."""
    look_seconds: float = 5.0
    """For so long a verifier reads that looks again: its front gives up after ten seconds."""
    checkpoint_seconds: float = 1.0
    """Between two checkpoints of a tree that grows."""
    announce_seconds: float = 60.0
    """Between two checkpoints that webhooks tell of."""
    round_seconds: float = 1.0
    """Between two looks at what time brings: key files that changed, what the store may forget."""
    wal_seconds: float = 60.0
    """Data that was erased in the file leaves the WAL within this time, if no reader needs it."""
    unsettled_slots: int = SLOTS
    """Slots of the journal that units may fill before they settle; at most SLOTS."""
    revoked_sessions: int = 1000
    """Sessions that may be revoked at the same time: every front knows each of them."""
    leases_at_once: int = 2000
    """Events that one page of the list of sessions looks at."""
    answer_bytes: int = MAX_NOTARY_FRAME
    """The largest frame for a front."""
    unsent_bytes: int = 64 * 1024 * 1024
    """Answers that a front has not taken: with more, it is gone for all purposes."""


DEFAULT_LIMITS = NotaryLimits()


@dataclass(slots=True)
class UnderWay:
    """A call whose worker has the word. `number` is that of its Open, which is answered when the call has ended."""

    front_id: str
    number: int
    worker_id: str
    intent_us: int = 0
    """Microseconds for writing the intent."""
    store_us: dict[str, int] | None = None
    """Duration of the requests to the store meanwhile: see Answered."""
    is_cut: bool = False
    """Its front has given it up and has the worker killed."""


@dataclass(slots=True)
class NotaryState:
    """The state of one notary. It changes after a commit, never before."""

    settings: Settings
    clock: TimeSource
    database: Database
    signers: Signers
    backlog: Backlog
    witnesses: ConfiguredWitnesses
    limits: NotaryLimits = DEFAULT_LIMITS
    open_store: Callable[[OpenTransaction], Store] = field(default_factory=lambda: partial(SqliteStore, room=CapRoom()))
    """The store within a unit's transaction."""
    stores: "Stores | None" = None
    """Connections of a store that is not in the ledger."""
    has_other_store: bool = False
    """True if the ledger used a store elsewhere before, and its own has to be used again."""
    head: Head | None = None
    """None: read it again."""
    leaves: int | None = None
    """How many the tree has; None: read it again."""
    checkpoint: Checkpoint | None = None
    """The last one that was signed."""
    newest: float = 0.0
    """When the newest evidence was written that was there at the start (Unix seconds)."""
    epoch: int | None = None
    """None: read it again."""
    revoked: dict[str, float] | None = None
    """Sessions that were revoked, and when their leases end; replaced, never changed. None: read it again."""
    refusals: dict[Key, RefusalCount] = field(default_factory=dict)
    """Refusals by principal and code; replaced, never changed."""
    unsettled: Unsettled | None = None
    """None: read it again."""
    export: EventExports = field(default_factory=EventExports)
    """How far the export of events has come."""
    proofs: KnownProofs | None = None
    """Those that were used, of a store in the ledger. None: read them again."""
    has_erased: bool = False
    """Something was overwritten in the file that the WAL may still hold."""
    is_failing: bool = False
    """The last unit could not be written."""
    intents: dict[str, OpenIntent] = field(default_factory=dict)
    """Under way, by id."""
    under_way: dict[str, UnderWay] = field(default_factory=dict)
    """By id of the intent; as far as this notary has given the word."""
    workers: dict[str, str] = field(default_factory=dict)
    """Worker -> the front that it serves; those that live."""
    given: Counter[str] = field(default_factory=Counter)
    """Worker -> calls that it has the word for."""
    unbegun: dict[str, UnderWay] = field(default_factory=dict)
    """By id of the intent: calls that were taken back, and wait for another worker."""
    fronts: set[str] = field(default_factory=set)
    """Ids of those that have a channel."""

    def forget(self, *, is_undone: bool = False) -> None:
        """Believe the database alone, after something that failed.

        `is_undone`: nothing of it was committed. Epoch, revocations and proofs, which no other process changes in a
        ledger that is not shared, then stand as they stood: without the store's tables leases are still issued.
        """
        self.head = self.leaves = self.unsettled = None
        if not is_undone or self.database.is_shared:
            self.epoch = self.revoked = self.proofs = None
        self.intents.clear()
