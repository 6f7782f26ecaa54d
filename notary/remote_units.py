"""Units whose store lies in Redis: performed again where others changed what they had read, undone where the ledger
does not have them.

The order of steps, and the state after an end between any two of them: docs/decisions/backends.md, "The order of Redis
and ledger".
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ipc.operations.operation import Operation
from ipc.process.logs import log
from notary.backends.redis.changes import Outdated, StoreLost
from notary.backends.redis.stores import Stores
from notary.database import DatabaseGone
from notary.ledger import gateways
from notary.operations.reconciling import StoreChanged
from notary.state import NotaryState
from notary.store.contract import StoreGone
from notary.store.marker import read_doubt, read_marker
from notary.units.performing import Performer
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task, TaskOutcome

ATTEMPTS: Final = 8
"""Attempts at one unit that other gateways outdate."""
POLL_SECONDS: Final = 0.25
"""A revocation at another gateway reaches every front within a second."""
LOST: Final = "the Redis of the store has lost its data, or is another one"


class RemoteUnits(TransactionRunner):
    """See TransactionRunner."""

    def __init__(
        self, state: NotaryState, stores: Stores, performers: Mapping[type[Operation[Any]], Performer],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        super().__init__(state, performers)
        self._stores = stores
        self._monotonic = monotonic
        self._poll_at = 0.0

    def _together(self, tasks: Sequence[Task]) -> list[TaskOutcome]:
        stores = self._stores
        stores.used.clear()
        for _ in range(ATTEMPTS):
            self._recover()
            try:
                outcomes = super()._together(tasks)
            except Outdated:
                self._state.epoch, self._state.revoked = stores.epoch, stores.revoked
                continue
            except StoreLost:
                self._reconcile()
                continue
            except Exception:
                self._state.forget()
                self._recover()  # at once, if that can be
                raise
            return outcomes
        raise StoreGone("Redis: others change it all the time")

    def patience(self) -> float:
        """Seconds until the next look at the store."""
        return max(0.0, self._poll_at - self._monotonic())

    def tend(self) -> bool:
        """Hear of what others did. True when another epoch is in force, or may be, or another session was revoked."""
        if self._monotonic() < self._poll_at:
            return False
        self._poll_at = self._monotonic() + POLL_SECONDS
        stores, state = self._stores, self._state
        if not stores.client.is_there:
            return False
        self._recover()
        try:
            stores.poll()
            stores.tidy()
            if stores.is_lost:
                self._reconcile()
        except (StoreGone, DatabaseGone) as error:
            log.warning("the store could not be looked at", cause=str(error))
        if (state.epoch, state.revoked) == (stores.epoch, stores.revoked):
            return False
        state.epoch, state.revoked = stores.epoch, stores.revoked
        return True

    def _recover(self) -> None:
        """Undo changes of units that the ledger does not have. If it fails, the store is not used until then."""
        stores = self._stores
        if not stores.client.is_taken and stores.client.is_there:
            stores.take()
        if not stores.owes or not stores.client.is_taken:
            return
        with contextlib.suppress(StoreGone, DatabaseGone):
            database = self._state.database
            # SECURITY: by the lock of a shared ledger, a unit whose end is not known has ended.
            with database.unit(writes=database.is_shared) as connection:
                last = gateways.read_last(database, connection).last
                doubt = read_doubt(connection, stores.notary)
            stores.recover(last, doubt)

    def _reconcile(self) -> None:
        if self._was_renewed():
            return
        # By the time of this unit another gateway may have done it: then the loss is still to be looked at.
        known = self._stores.marker if self._state.database.is_shared else None
        (outcome,) = super()._together((Task("", 0, StoreChanged(LOST, known)),))
        if outcome.value:
            log.error("every lease of before has ended", reason=LOST)
            self._stores.is_lost = False
            self._state.epoch = self._stores.epoch

    def _was_renewed(self) -> bool:
        """True where another gateway of a shared ledger has noticed the loss, and ended the leases."""
        stores = self._stores
        if not self._state.database.is_shared:
            return False
        with self._state.database.unit() as connection:
            marker = read_marker(connection)
        if marker is None or marker == stores.marker:
            return False
        stores.follow(marker)
        if stores.is_lost:
            return False
        self._state.epoch = stores.epoch
        return True
