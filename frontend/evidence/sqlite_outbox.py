"""The outbox of the SQLite ledger: its tables lie in the ledger's file, and its writes go with the ledger's.

Guarantees what frontend/evidence/outbox.py promises, for any number of processes on the file. Writes share the thread
and the transactions of the evidence; reads ask beside them.
"""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, cast

from frontend.evidence import reading
from frontend.evidence.deliveries import (
    GIVEN_UP_AT_ONCE,
    Claim,
    Delivered,
    GiveUp,
    GiveUpSome,
    Name,
    Outcome,
    PutOff,
    Task,
)
from frontend.evidence.outbox import Delivery

Answer = TypeVar("Answer")

MAX_ERROR_CHARACTERS = 500


class _Ask(Protocol):
    def __call__(self, question: Callable[[sqlite3.Connection], Answer]) -> Awaitable[Answer]: ...


class SqliteOutbox:
    """Implements frontend.evidence.outbox.Outbox. `write` performs a task in the ledger's writing thread, `ask` a
    question beside it; both raise LedgerUnavailable."""

    def __init__(self, write: Callable[[Task], Awaitable[Outcome]], ask: _Ask) -> None:
        self._write = write
        self._ask = ask

    async def claim(self, endpoint: str, *, now: int, until: int, limit: int) -> list[Delivery]:
        """Take what is due, the longest due first."""
        return cast(list[Delivery], await self._write(Claim(endpoint, now, until, limit)))

    async def delivered(self, delivery: Delivery) -> None:
        """It has arrived."""
        await self._write(Delivered(_name(delivery)))

    async def put_off(self, delivery: Delivery, due: int) -> None:
        """Try again at `due`."""
        await self._write(PutOff(_name(delivery), due))

    async def give_up(self, delivery: Delivery, *, at: int, error: str) -> None:
        """Never try again."""
        await self._write(GiveUp(_name(delivery), at, _sentence(error)))

    async def give_up_all(self, endpoint: str, *, at: int, error: str) -> int:
        """The same for everything that waits for an endpoint. When it fails, what was moved before stays moved."""
        moved, step = 0, GIVEN_UP_AT_ONCE
        while step == GIVEN_UP_AT_ONCE:
            step = cast(int, await self._write(GiveUpSome(endpoint, at, _sentence(error))))
            moved += step
        return moved

    async def waiting(self) -> dict[str, int]:
        """How many deliveries wait, by endpoint."""
        return await self._ask(reading.waiting_deliveries)

    async def next_due(self, endpoint: str) -> int | None:
        """When the first of an endpoint's deliveries is due, or its claim ends."""
        return await self._ask(lambda connection: reading.next_due(connection, endpoint))


def _name(delivery: Delivery) -> Name:
    return delivery.seq, delivery.attempt, delivery.event_id


def _sentence(error: str) -> str:
    """What the writing thread can write, however strange: it writes evidence in the same transaction."""
    return error[:MAX_ERROR_CHARACTERS].encode("utf-8", "backslashreplace").decode()
