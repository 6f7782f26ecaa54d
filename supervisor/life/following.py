"""Sends the settings that a reload has changed to the processes that took no part in it: the notary, fronts that were
still starting, the deliverer and the broker.

Guarantees that each of them has confirmed the new settings, or has ended, before the reload is answered: none of them
accepts a removed operator. A process that starts later gets them with its first message.
"""

from collections.abc import Callable, Iterable

import trio

from ipc.messages.control import FollowSettings, SettingsFollowed
from supervisor.keepers.brokers import BrokerKeeper
from supervisor.keepers.deliverers import DelivererKeeper
from supervisor.keepers.fronts import FrontLife
from supervisor.keepers.notaries import NotaryKeeper
from supervisor.logs import log
from supervisor.state import SupervisorState

FOLLOW_SECONDS = 5.0
"""The notary may have a unit on its way to the disk; what does not follow is killed, and its successor has them."""


class Followers:
    """Knows the processes that must get new settings. `fronts()` returns the fronts that live at the moment."""

    def __init__(
        self,
        state: SupervisorState,
        notary: NotaryKeeper,
        deliverer: DelivererKeeper,
        broker: BrokerKeeper,
        fronts: Callable[[], list[FrontLife]],
    ) -> None:
        self._state = state
        self._notary = notary
        self._deliverer = deliverer
        self._broker = broker
        self._fronts = fronts

    async def follow(self, message: FollowSettings | None, but: Iterable[FrontLife]) -> None:
        """Return once the notary and every front `but` these have applied the settings; a late process is killed.

        Without new settings only the deliverer follows: a reload opens endpoints that answered 410.
        """
        if message is None:
            await self._deliverer.follow()
            await self._broker.follow()
            return
        known = set(but)
        late = [front for front in self._fronts() if front not in known and front.child is not None]
        for front in late:
            front.post(message)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._notary.follow, message, FOLLOW_SECONDS)
            nursery.start_soon(self._deliverer.follow)
            nursery.start_soon(self._broker.follow)
            for front in late:
                nursery.start_soon(self._until_followed, front, message.request_id)

    async def _until_followed(self, front: FrontLife, request_id: str) -> None:
        child = front.child
        assert child is not None
        with trio.move_on_after(FOLLOW_SECONDS):
            await self._state.condition.until(lambda: front.followed == request_id or front not in self._fronts())
            return
        log.error(f"{front.name} is killed: it did not apply the reloaded settings", pid=child.pid)
        child.kill()
        await child.wait()

    def answer_followed(self, front: FrontLife, message: SettingsFollowed) -> None:
        """A front decides by them."""
        front.followed = message.request_id
        self._state.condition.notify_all()
