"""The revocation epoch: what a new lease carries, what a grant must carry, and how it is raised.

The key-value store holds it, and says it with every proof that is recorded. Leases are issued while the store is down
(interface specification, "Failure conditions"), so the last epoch known serves then: a lease of an earlier one is
invalid at its first use, where the store must answer. A grant is signed only for the newest epoch that this front has
heard of, and has heard just now; whoever raises it can wait until none is on its way that was looked up before.
"""

from collections import Counter
from types import TracebackType

import trio

from frontend.errors import GateError
from frontend.stores.interface import Store, StoreUnavailable
from frontend.telemetry.logs import log

FRESH_SECONDS = 0.1
"""How old the store's last word may be when a grant is signed; then it is asked. It speaks with every request, so that
a call that waited for nothing costs no further look. What this front raises itself counts at once."""
GRANTS_SECONDS = 15.0
"""A grant on its way waits for one write of its evidence, which has a shorter deadline."""


class Epochs:
    """Remembers the newest epoch seen; never goes back."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = 0
        self._told_at = float("-inf")
        self._granting: Counter[int] = Counter()
        self._granted = trio.Event()

    def note(self, epoch: int) -> None:
        """What the store has just said."""
        self._last, self._told_at = max(self._last, epoch), trio.current_time()

    async def for_issue(self) -> int:
        """The epoch in force, or the last one known when the store can't be asked."""
        try:
            self.note(await self._store.epoch())
        except StoreUnavailable as error:
            log.warning("a lease is issued with the last epoch known", epoch=self._last, cause=str(error))
        return self._last

    async def current(self) -> int:
        """The epoch in force. Raises GateError epoch_store_unavailable."""
        try:
            return await self._store.epoch()
        except StoreUnavailable as error:
            raise GateError("epoch_store_unavailable", cause=str(error)) from None

    async def raise_by_one(self, above: int = 0) -> tuple[int, int]:
        """(previous, current), durably; current is beyond `above` too. Raises GateError epoch_store_unavailable: it may
        have risen all the same."""
        try:
            previous, current = await self._store.raise_epoch(above)
        except StoreUnavailable as error:
            raise GateError("epoch_store_unavailable", cause=str(error)) from None
        self.note(current)
        return previous, current

    def granting(self, epoch: int, refusal: str) -> "Granting":
        """`async with` this around signing a grant of `epoch` and making it durable. Raises GateError `refusal` when
        another epoch is in force, replay_cache_unavailable when nobody can say."""
        return Granting(self, epoch, refusal)

    def begin_grant(self, epoch: int) -> None:
        """A grant of `epoch` is on its way."""
        self._granting[epoch] += 1

    def end_grant(self, epoch: int) -> None:
        """It is durable, or never will be."""
        self._granting[epoch] -= 1
        if not self._granting[epoch]:
            del self._granting[epoch]
            self._granted.set()
            self._granted = trio.Event()

    async def look(self, epoch: int, refusal: str) -> None:
        """See `granting`."""
        if self._last == epoch and trio.current_time() - self._told_at > FRESH_SECONDS:
            try:
                self.note(await self._store.epoch())
            except StoreUnavailable as error:
                raise GateError("replay_cache_unavailable", cause=str(error)) from None
        if self._last != epoch:
            raise GateError(refusal, cause=f"epoch {epoch} of the call, {self._last} is in force")

    async def older_grants_done(self, epoch: int) -> None:
        """Until no grant of an epoch before this one is on its way, GRANTS_SECONDS at most."""
        with trio.move_on_after(GRANTS_SECONDS) as scope:
            while any(one < epoch for one in self._granting):
                await self._granted.wait()
        if scope.cancelled_caught:
            log.error("grants of an earlier epoch are still on their way", epoch=epoch)


class Granting:
    """One grant on its way; see Epochs.granting. Written out: every call has one, and a generator costs twice this."""

    __slots__ = ("_epoch", "_epochs", "_refusal")

    def __init__(self, epochs: Epochs, epoch: int, refusal: str) -> None:
        self._epochs = epochs
        self._epoch = epoch
        self._refusal = refusal

    async def __aenter__(self) -> None:
        self._epochs.begin_grant(self._epoch)
        try:
            await self._epochs.look(self._epoch, self._refusal)
        except BaseException:
            self._epochs.end_grant(self._epoch)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._epochs.end_grant(self._epoch)
