"""The part of a notary's Redis (notary/backends/redis/stores.py) that the store of one unit uses."""

from collections.abc import Callable
from typing import Protocol

from notary.backends.redis.changes import Changes
from notary.backends.redis.client import Client
from notary.backends.redis.keys import RedisKeys
from notary.store.keeping import KeptBounds


class Shared(Protocol):
    """The state of one notary's Redis: see Stores."""

    client: Client
    keys: RedisKeys
    notary: str
    clock: Callable[[], float]
    epoch: int
    revoked: dict[str, float]
    marker: str
    used: set[str]
    sent: int | None

    def check(self) -> None: ...

    def apply(self, changes: Changes, number: int) -> None: ...

    def confirm(self) -> None: ...

    def renew(self, above: int) -> tuple[int, int]: ...

    def sweep(self, over_since: float) -> bool: ...

    def trim_kept(self, bounds: KeptBounds) -> int: ...
