"""The embedded key-value store: one SQLite file, one thread, each operation whole inside the unit's transaction.

Implements frontend/stores/interface.py for a single host and any number of fronts on it. What an operation answered is
durable. Guarantees nothing about order between operations that wait at the same time.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import trio

from frontend.stores import counters, holds, proofs
from frontend.stores.batching import BatchingThread
from frontend.stores.database import LOCK_SECONDS, Database, DatabaseGone, each
from frontend.stores.interface import ApprovalRecord, Budget, CheckIn, Hold, StoreUnavailable
from frontend.stores.turns import Turn

Answer = TypeVar("Answer")

SCHEMA_VERSION = 1
OPEN_SECONDS = 20.0
SWEEP_ROUNDS = 100
"""Rounds of one sweep: what is left then is left for the next one."""


class _Operation(msgspec.Struct, frozen=True):
    work: Callable[[sqlite3.Connection], Any]
    writes: bool


class SqliteStore:
    """Implements frontend.stores.interface.Store; `open` makes one."""

    def __init__(self, database: Database, turn: Turn) -> None:
        self._database = database
        self._turn = turn
        self._thread: BatchingThread[_Operation | proofs.Visit, Any] = BatchingThread(
            "store", self._perform, unavailable=StoreUnavailable, turn=None, on_idle=database.tend,
            on_close=self._release,
        )  # fmt: skip

    @classmethod
    async def open(cls, path: str | Path, *, lock_seconds: float = LOCK_SECONDS) -> "SqliteStore":
        """Open the file, made with mode 0600 where it is missing. Raises StoreUnavailable."""
        database = Database(Path(path), _prepare, lock_seconds=lock_seconds)
        turn = Turn(database.path)

        def opened() -> None:
            with turn:
                database.open()

        with trio.move_on_after(OPEN_SECONDS):
            try:
                await trio.to_thread.run_sync(opened, abandon_on_cancel=True)
            except (DatabaseGone, OSError) as error:
                turn.close()
                raise StoreUnavailable(f"store: {error}") from error
            return cls(database, turn)
        raise StoreUnavailable(f"store: {path} could not be opened within {OPEN_SECONDS:g} s")

    async def check_in(self, proof_key: str, expires_at: float, now: float) -> CheckIn:
        """Record a proof's key once and read the epoch."""
        return cast(CheckIn, await self._thread.submit(proofs.Visit(proof_key, expires_at, now)))

    async def epoch(self) -> int:
        """Revocation epoch in force."""
        return await self._read(proofs.epoch)

    async def raise_epoch(self, above: int = 0) -> tuple[int, int]:
        """(previous, current) after adding one to the higher of the epoch and `above`."""
        return await self._write(lambda connection: proofs.raise_epoch(connection, above))

    async def budget_open(self, session_id: str, max_calls: int, expires_at: float) -> None:
        """Create the counter of a new session."""
        await self._write(counters.open_budget(session_id, max_calls, expires_at))

    async def budget_read(self, session_id: str) -> Budget:
        """Look without debiting."""
        return await self._read(counters.read(session_id))

    async def budget_debit(self, session_id: str) -> Budget:
        """Take one call."""
        return await self._write(counters.debit(session_id))

    async def budget_refund(self, session_id: str) -> Budget:
        """Give one call back."""
        return await self._write(counters.refund(session_id))

    async def approval_hold(self, record: ApprovalRecord, limit: int, now: float) -> Hold:
        """Store a pending approval."""
        return await self._write(holds.hold(record, limit, now))

    async def approval_pending(
        self, session_id: str, action_id: str, request_hash: str, now: float
    ) -> ApprovalRecord | None:
        """The pending, unexpired approval of this very call."""
        return await self._read(holds.pending(session_id, action_id, request_hash, now))

    async def approval_get(self, approval_id: str) -> ApprovalRecord | None:
        """As stored."""
        return await self._read(holds.get(approval_id))

    async def approval_list(self, states: tuple[str, ...] | None, limit: int) -> list[ApprovalRecord]:
        """Newest first."""
        return await self._read(holds.newest(states, limit))

    async def approval_move(
        self, approval_id: str, from_state: str, to_state: str, *, outcome: str, holder: str | None,
        unexpired_at: float | None = None,
    ) -> ApprovalRecord | None:  # fmt: skip
        """Compare and swap."""
        return await self._write(holds.move(approval_id, from_state, to_state, outcome, holder, unexpired_at))

    async def approval_expire(self, now: float, limit: int) -> list[ApprovalRecord]:
        """Move pending ones whose time is over to expired."""
        return await self._write(holds.expire(now, limit))

    async def approval_claimed_by_others(self, live_holders: tuple[str, ...]) -> list[ApprovalRecord]:
        """Claimed approvals whose holder is not alive."""
        return await self._read(holds.claimed_by_others(live_holders))

    async def pending_count(self, now: float) -> int:
        """Approvals that wait for an operator."""
        return await self._read(holds.count_pending(now))

    async def pending_oldest(self, now: float) -> float | None:
        """When the one that has waited longest was created."""
        return await self._read(holds.oldest_pending(now))

    async def sweep(self, now: float, keep_ended_seconds: float) -> None:
        """Forget what is over, a little at a time so that nobody waits for it."""
        for work in (proofs.sweep(now), counters.sweep(now), holds.sweep(now - keep_ended_seconds)):
            for _ in range(SWEEP_ROUNDS):
                if not await self._write(work):
                    break

    async def close(self) -> None:
        """Finish what is queued and release the file."""
        await self._thread.close()

    async def _read(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        return cast(Answer, await self._thread.submit(_Operation(work, writes=False)))

    async def _write(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        return cast(Answer, await self._thread.submit(_Operation(work, writes=True)))

    def _perform(self, operations: list[_Operation | proofs.Visit]) -> list[Any]:
        visits = [one for one in operations if isinstance(one, proofs.Visit)]
        others = [one for one in operations if isinstance(one, _Operation)]
        writes = bool(visits) or any(one.writes for one in others)
        with self._database.unit(writes=writes) as connection:
            seen = iter(proofs.check_in(connection, visits) if visits else ())
            done = iter(each(connection, [one.work for one in others]))
        return [next(seen if isinstance(one, proofs.Visit) else done) for one in operations]

    def _release(self) -> None:
        self._database.close()
        self._turn.close()


def _prepare(connection: sqlite3.Connection) -> None:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables == 0:
        for statement in (*proofs.TABLES, *counters.TABLES, *holds.TABLES):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    elif version != SCHEMA_VERSION:
        raise DatabaseGone(f"not a store of this version: its schema is {version}, known is {SCHEMA_VERSION}")
