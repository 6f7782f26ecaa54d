"""The embedded ledger: one SQLite file, one writing thread with group commit, readers beside it.

Guarantees what frontend/evidence/ledger.py promises, for any number of processes on the file. Writers take turns
(frontend/stores/turns.py); order and integrity rest on SQLite's transactions alone.
"""

import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import trio

from frontend.evidence import deliveries, reading, schema
from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import (
    EventQuery,
    EvidenceRefused,
    Intent,
    IntentView,
    LedgerUnavailable,
    OutboxRow,
    VerifyReport,
)
from frontend.evidence.receipts import Receipt
from frontend.evidence.sqlite_outbox import SqliteOutbox
from frontend.evidence.verify import verify_chain
from frontend.evidence.writing import (
    Operation,
    Outcome,
    Probe,
    prepared_intent,
    prepared_record,
    write_apart,
    write_together,
)
from frontend.stores.batching import BatchingThread
from frontend.stores.database import LOCK_SECONDS, Database, DatabaseGone
from frontend.stores.readers import Readers
from frontend.stores.turns import Turn

Answer = TypeVar("Answer")

OPEN_SECONDS = 20.0
HEALTH_SECONDS = 2.0


class SqliteLedger:
    """Implements frontend.evidence.ledger.Ledger; `open` makes one."""

    def __init__(self, database: Database, turn: Turn, clock: Callable[[], float]) -> None:
        self._database = database
        self._turn = turn
        self._clock = clock
        self._readers = Readers(database.path)
        self._is_failing = False
        self._writer: BatchingThread[Operation, Outcome] = BatchingThread(
            "ledger", self._write, unavailable=LedgerUnavailable, turn=None, on_idle=database.tend,
            on_close=self._release, is_company=_is_evidence,
        )  # fmt: skip
        self.outbox = SqliteOutbox(self._writer.submit, self._ask)

    @classmethod
    async def open(
        cls, path: str | Path, *, lock_seconds: float = LOCK_SECONDS, clock: Callable[[], float] = time.time
    ) -> "SqliteLedger":
        """Open the file, made with mode 0600 where it is missing.

        `lock_seconds` is how long a unit waits for a stranger's lock; `clock` only dates how old intents are. Raises
        LedgerUnavailable.
        """
        database = Database(Path(path), schema.prepare, lock_seconds=lock_seconds)
        turn = Turn(database.path)

        def opened() -> None:
            with turn:
                database.open()

        with trio.move_on_after(OPEN_SECONDS):
            try:
                await trio.to_thread.run_sync(opened, abandon_on_cancel=True)
            except (DatabaseGone, OSError) as error:
                turn.close()
                raise LedgerUnavailable(f"ledger: {error}") from error
            return cls(database, turn, clock)
        raise LedgerUnavailable(f"ledger: {path} could not be opened within {OPEN_SECONDS:g} s")

    async def begin(self, intent: Intent) -> None:
        """Write the intent and consume its grant. Raises GrantConsumed."""
        await self._writer.submit(prepared_intent(intent))

    async def record(
        self, *, receipt: Receipt | None, event: AuditEvent, outbox: tuple[OutboxRow, ...] = (),
        intent_id: str | None = None,
    ) -> None:  # fmt: skip
        """Write receipt, event and outbox and resolve the intent. Raises AlreadyRecorded, ValueError."""
        await self._writer.submit(prepared_record(receipt, event, outbox, intent_id))

    async def append(self, event: AuditEvent, outbox: tuple[OutboxRow, ...] = ()) -> None:
        """Write an event that has no receipt."""
        await self._writer.submit(prepared_record(None, event, outbox, None))

    async def receipt(self, receipt_id: str) -> Receipt | None:
        """A receipt as it was signed."""
        return await self._ask(lambda connection: reading.receipt_by_id(connection, receipt_id))

    async def receipt_of_approval(self, approval_id: str) -> str | None:
        """Id of an approved call's receipt."""
        return await self._ask(lambda connection: reading.receipt_id_of_approval(connection, approval_id))

    async def intent_of_approval(self, approval_id: str) -> IntentView | None:
        """An approved call's intent, resolved or not."""
        now = self._clock()
        return await self._ask(lambda connection: reading.intent_of_approval(connection, approval_id, now))

    async def unresolved(self, limit: int) -> list[IntentView]:
        """Intents without receipt, oldest first."""
        now = self._clock()
        return await self._ask(lambda connection: reading.unresolved_intents(connection, limit, now))

    async def unresolved_count(self) -> int:
        """How many there are."""
        return await self._ask(reading.count_unresolved)

    async def query(self, query: EventQuery) -> list[bytes]:
        """Events as stored, newest first."""
        return await self._ask(lambda connection: reading.events_of(connection, query))

    async def verify(self, progress: Callable[[int], None] | None = None) -> VerifyReport:
        """Walk the whole chain, in a thread, for as long as it takes."""
        return await self._ask(lambda connection: verify_chain(connection, progress), seconds=math.inf)

    async def last_time(self) -> float | None:
        """Unix seconds of the newest evidence."""
        return await self._ask(reading.newest_time)

    async def health(self) -> bool:
        """True when the next write should succeed: the last one did, or one that is tried now does."""
        try:
            await self._writer.submit(Probe(writes=self._is_failing), wait_seconds=HEALTH_SECONDS)
        except LedgerUnavailable:
            return False
        return True

    async def close(self) -> None:
        """Write what is queued and release the file."""
        # The last connection to leave copies the WAL into the file and removes it; a reader could not.
        self._readers.close()
        await self._writer.close()

    async def _ask(self, question: Callable[[sqlite3.Connection], Answer], *, seconds: float = 10.0) -> Answer:
        try:
            return await self._readers.ask(question, seconds=seconds)
        except DatabaseGone as error:
            raise LedgerUnavailable(f"ledger: {error}") from error

    def _write(self, operations: list[Operation]) -> Sequence[Outcome | Exception]:
        self._is_failing = True
        outcomes: Sequence[Outcome | Exception]
        try:
            with self._database.unit() as connection:
                outcomes = write_together(connection, operations)
        except EvidenceRefused:  # which no sound caller brings about; nothing has been written
            with self._database.unit() as connection:
                outcomes = write_apart(connection, operations)
        self._is_failing = False
        return outcomes

    def _release(self) -> None:
        self._database.close()
        self._turn.close()


def _is_evidence(operation: Operation) -> bool:
    """Whether somebody's call waits for it. Deliveries come along, and no call is kept waiting for one."""
    return not isinstance(operation, deliveries.Task)
