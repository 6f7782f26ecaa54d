"""One notary's way to its store in Redis: what it knows of it between two units.

Guarantees that a unit is applied whole or not at all, and only to the Redis that the ledger remembers; that what was
applied for a unit which the ledger does not have is undone before anything else; and that an answer which did not come
counts as a unit that may have been applied.
"""

import secrets
from collections.abc import Callable
from typing import Any, Final

import msgspec

from notary.backends.redis import scripts
from notary.backends.redis.changes import Changes, Outdated, StoreLost
from notary.backends.redis.client import Client
from notary.backends.redis.keys import RedisKeys
from notary.backends.redis.unit_store import RedisStore
from notary.database import OpenTransaction
from notary.store.contract import StoreGone
from notary.store.keeping import TRIMMED_AT_ONCE, KeptBounds

MAX_ENDED: Final = 10_000
"""Approvals that have ended and are listed; each can be asked for by its id for a day, however many there are."""
SWEPT_AT_ONCE: Final = 100
_encode = msgspec.json.Encoder().encode


class Stores:
    """The Redis of one notary, and a store in it for each unit."""

    def __init__(self, client: Client, keys: RedisKeys, notary: str, clock: Callable[[], float]) -> None:
        self.client = client
        self.keys = keys
        self.notary = notary
        """Id of the ledger."""
        self.clock = clock
        self.epoch = 0
        """As it was last heard of."""
        self.revoked: dict[str, float] = {}
        """Sessions that were revoked, as it was last heard, and when their leases end; replaced, never changed."""
        self.marker = ""
        self.is_lost = False
        self.owes = True
        """True if the last unit that was applied may have to be undone."""
        self.sent: int | None = None
        """Number of the unit that may have been applied and that the ledger is not known to have."""
        self.used: set[str] = set()
        """Keys of proofs that were found to be used, for the next attempt of the same unit."""
        self._fence = ""
        self._recorded: int | None = None
        """The last unit that both Redis and ledger have said they have."""
        self._undoable: int | None = None
        """The last unit whose record says how to undo it."""

    def open(self, connection: OpenTransaction) -> RedisStore:
        """The store within a unit of the ledger."""
        return RedisStore(self, connection)

    def begin(self, marker: str | None, epoch: int, is_new: bool) -> str:
        """Look at the Redis for the first time, given what the ledger remembers; the marker that it is to remember.

        Raises StoreGone. A ledger with a history must not go on with a store that knows nothing of it: is_lost then.
        """
        keys = [self.keys.marker, self.keys.epoch]
        if marker is None and is_new:
            stored_marker, there = self.client.run(scripts.BEGIN, keys, secrets.token_hex(16), str(epoch))
            self.marker, self.epoch = stored_marker, int(there)
        else:
            self.marker, self.epoch = marker or "", epoch
            self.poll()
            self.is_lost = self.is_lost or marker is None
        return self.marker

    def poll(self) -> None:
        """Learn of another epoch, of sessions that were revoked, or of a loss. Raises StoreGone."""
        after = f"({self.clock()!r}"
        (marker, epoch), revoked = self.client.many((
            ("MGET", self.keys.marker, self.keys.epoch),
            ("ZRANGEBYSCORE", self.keys.revoked, after, "+inf", "WITHSCORES"),
        ))  # fmt: skip
        self.revoked = dict(zip(revoked[::2], map(float, revoked[1::2]), strict=True))
        if marker != self.marker or epoch is None:
            self.is_lost = True
        else:
            self.epoch = int(epoch)

    def follow(self, marker: str) -> None:
        """The ledger remembers another Redis than this notary: see whether it is this one. Raises StoreGone."""
        self.marker, self.is_lost, self._recorded = marker, False, None
        self.poll()

    def take(self) -> None:
        """Take over a new connection: the state of the store is unknown until it is read."""
        self.client.take()
        self.owes = True

    def recover(self, last: int, doubt: int | None) -> None:
        """Undo what was applied for a unit after `last`, the last one of the ledger, or under the number `doubt`, which
        the ledger gave to one that changed nothing here. Raises StoreGone."""
        fence, asked = secrets.token_hex(8), [str(last), "" if doubt is None else str(doubt)]
        said, had = self.client.run(scripts.RECOVER, [self.keys.unit(self.notary)], fence, *asked)
        # SECURITY: a replica that was made the master lacks what had not reached it: proofs, debits, revocations.
        is_behind = self._recorded is not None and int(had) < self._recorded
        self._fence, self.owes, self.sent, self._undoable = fence, False, None, None
        # Ahead: the ledger was put back. No data of the store fits it.
        self.is_lost = self.is_lost or said == "ahead" or is_behind

    def renew(self, above: int) -> tuple[int, int]:
        """Make this Redis the ledger's: (previous, current) epoch. Raises StoreGone."""
        keys = [self.keys.marker, self.keys.epoch, self.keys.unit(self.notary)]
        previous = self.epoch
        self.marker, current = self.client.run(scripts.RENEW, keys, secrets.token_hex(16), str(max(above, previous)))
        self.epoch, self._recorded = int(current), None
        return previous, self.epoch

    def check(self) -> None:
        """Raises StoreLost, or StoreGone where it must not be asked now."""
        if self.is_lost:
            raise StoreLost
        self.client.check()
        if self.owes:
            raise StoreGone("Redis: what was applied last is not known yet")

    def apply(self, changes: Changes, number: int) -> None:
        """Do what unit `number` has done. Raises Outdated, StoreLost or StoreGone: then nothing is done, or `owes` says
        that it may be."""
        self.check()
        asked: dict[str, Any] = {
            "marker_key": self.keys.marker, "marker": self.marker, "epoch_key": self.keys.epoch,
            "epoch": str(changes.epoch), "fence": self._fence, "number": str(number), "proofs": changes.proofs,
            "proof_ms": changes.proof_ms, "checks": changes.checks, "steps": changes.steps,
        }  # fmt: skip
        # Without an answer the outcome is unknown.
        self.owes, self.sent = True, number
        said, *more = self.client.run(
            scripts.APPLY, [self.keys.unit(self.notary)], _encode(asked).decode()
        )  # fmt: skip
        self.owes, self.sent = False, None
        if said == "lost":
            self.is_lost = True
            raise StoreLost
        if said == "fence":
            self.owes = True
            raise Outdated
        if said == "epoch":
            self.epoch = int(more[0])
            raise Outdated
        if said == "changed":
            self.used.update(more)
            if not more:  # a session that was revoked elsewhere may be what has changed
                self.poll()
            raise Outdated
        if changes.steps or changes.proofs:
            self.owes, self.sent = True, number  # until the ledger has it
            self._undoable = number
        if changes.raised is not None:
            self.epoch = changes.raised
        if changes.revoked:
            self.revoked = self.revoked | changes.revoked

    def confirm(self) -> None:
        """The ledger has the unit that was applied last."""
        self._recorded = self.sent or self._recorded
        self.owes, self.sent = False, None

    def tidy(self) -> None:
        """Erase how the last unit would be undone: a request may lie there. Raises StoreGone."""
        if self._undoable is not None and not self.owes:
            unit = [self.keys.unit(self.notary)]
            self.client.run(scripts.FORGET_UNDO, unit, self._fence, str(self._undoable))
            self._undoable = None

    def trim_kept(self, bounds: KeptBounds) -> int:
        """Erase ended approvals whose requests are kept beyond the bounds. How many it were. Raises StoreGone."""
        asked = (repr(bounds.since), str(bounds.bytes_of_principal), str(bounds.bytes_of_all), str(TRIMMED_AT_ONCE))
        return int(self.client.run(scripts.TRIM, [self.keys.kept], *asked))

    def sweep(self, over_since: float) -> bool:
        """Take from the list of ended approvals what is over. True when there may be more. Raises StoreGone."""
        swept = self.client.run(
            scripts.SWEEP, [self.keys.ended_at, self.keys.ended], repr(over_since), str(MAX_ENDED), str(SWEPT_AT_ONCE)
        )
        return int(swept) == SWEPT_AT_ONCE
