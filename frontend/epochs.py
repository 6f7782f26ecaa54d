"""The revocation epoch that a new lease carries.

Leases are issued while the key-value store is down (interface specification, "Failure conditions"), so the last epoch
read serves then. That is safe: an epoch that has risen meanwhile makes such a lease invalid at its first use, where
the store must answer.
"""

import structlog

from frontend.stores.interface import Store, StoreUnavailable

log = structlog.get_logger()


class Epochs:
    """Remembers the newest epoch seen; never goes back."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = 0

    async def for_issue(self) -> int:
        """The epoch in force, or the last one known when the store can't be asked."""
        try:
            self._last = max(self._last, await self._store.epoch())
        except StoreUnavailable as error:
            log.warning("a lease is issued with the last epoch known", epoch=self._last, cause=str(error))
        return self._last
