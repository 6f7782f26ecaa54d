"""The deliverer's questions to the notary: for due deliveries, and to settle them. It may ask no others.

Every method raises NotaryUnavailable, NotaryRefused and ClockError.
"""

from typing import Final

import msgspec

from frontend.notary.client import NotaryClient
from frontend.notary.link import Dialect
from ipc.evidence.records import Delivery
from ipc.messages.delivering import AskedByDeliverer, NotaryToDeliverer
from ipc.operations.deliveries import ClaimDeliveries, NextDelivery, SettleDelivery
from ipc.protocols.deliverer import NOTARY_TO_DELIVERER

DELIVERERS: Final = Dialect(AskedByDeliverer, NotaryToDeliverer, NOTARY_TO_DELIVERER)


class Outbox(msgspec.Struct, frozen=True):
    """Questions to the notary. `client` speaks DELIVERERS."""

    client: NotaryClient

    async def next_due(self, endpoint: str) -> int | None:
        """When the first delivery of an endpoint is due, in milliseconds."""
        return await self.client.ask(NextDelivery(endpoint))

    async def claim(self, endpoint: str, *, now: int, until: int, limit: int) -> list[Delivery]:
        """Take the deliveries that are due; no other claim gets them before `until`."""
        return await self.client.ask(ClaimDeliveries(endpoint, now, until, limit))

    async def settle(self, asked: SettleDelivery) -> None:
        """Settle a delivery."""
        return await self.client.ask(asked)
