"""Places at the gateway: how many requests are there at once, in all and from one address.

SECURITY: an address is all that the edge knows of a client. The principal that a lease names counts for nothing here:
the edge can't verify it, so that a client could take the places of another. The gateway shares its own places by
principal.
"""

from typing import Final

import trio

from ipc.configuration.edge_settings import EdgeLimitSettings

PLACES: Final = 128
PLACE_SECONDS: Final = 10.0


def place_share(limits: EdgeLimitSettings) -> int:
    """Places of one address: a quarter, or more where one address may have a larger part of all connections."""
    return min(PLACES, max(PLACES // 4, PLACES * limits.max_connections_per_address // limits.max_connections))


class GatewayPlace:
    """One place. Give it back with `release`."""

    __slots__ = ("_limiters",)

    def __init__(self) -> None:
        self._limiters: list[trio.CapacityLimiter] = []

    async def take(self, limiter: trio.CapacityLimiter) -> None:
        """Wait until this limiter has it, too."""
        await limiter.acquire_on_behalf_of(self)
        self._limiters.append(limiter)

    def release(self) -> None:
        """Give it back."""
        while self._limiters:
            self._limiters.pop().release_on_behalf_of(self)


class GatewayPlaces:
    """All places. A request waits for one of its address first, so that a flood waits in no line of others."""

    def __init__(self, share: int) -> None:
        self._share = share
        self._all = trio.CapacityLimiter(PLACES)
        self._of_address: dict[str, trio.CapacityLimiter] = {}

    async def take(self, address: str) -> GatewayPlace:
        """A place. Raises trio.TooSlowError where none is free in time."""
        place = GatewayPlace()
        try:
            with trio.fail_after(PLACE_SECONDS):
                await place.take(self._of_address.setdefault(address, trio.CapacityLimiter(self._share)))
                await place.take(self._all)
        except BaseException:
            self.release(address, place)
            raise
        return place

    def release(self, address: str, place: GatewayPlace) -> None:
        """Give a place of this address back."""
        place.release()
        own = self._of_address.get(address)
        if own is not None and not own.borrowed_tokens and not own.statistics().tasks_waiting:
            del self._of_address[address]
