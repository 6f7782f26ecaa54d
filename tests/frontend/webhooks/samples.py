"""Endpoints of settings, what the ledger keeps for them, and fronts that notify, for the tests of webhooks."""

import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import trio
from msgspec.structs import replace

from frontend.deadlines import WebhookDeadlines
from frontend.webhooks.deliverer import Deliverer
from frontend.webhooks.delivery import open_post
from frontend.webhooks.endpoints import open_endpoints
from frontend.webhooks.outbox import DELIVERERS, Outbox
from ipc.evidence.records import Delivery
from ipc.messages.control import TryWebhook, WebhookTried
from ipc.settings import EgressSettings, WebhookSettings
from tests.support.breakable_notary import BreakableClient
from tests.support.front_core import Core, action, front_core
from tests.support.patience import PATIENCE, PATIENT
from tests.support.webhook_receiver import Receiver

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
HOST = "hooks.test"
LOOKS_OFTEN = WebhookDeadlines(look_again_seconds=0.05)
"""Tests move the clock, and a sender is not told of it."""
ECHO_AND_DIE = (action(), action("die"))

DELIVERY = Delivery(
    seq=1, event_id="evt_1", kind="revocation", endpoint="chat", attempt=1, payload='{"data":{"trace_id":"trc_1"}}'
)


def hook(**changes: Any) -> WebhookSettings:
    whole: dict[str, Any] = {
        "name": "chat", "url": f"http://{HOST}/in", "secret": SECRET, "timeout_seconds": PATIENCE,
        "retry_backoff_seconds": (0.01,),
    } | changes  # fmt: skip
    return WebhookSettings(**whole)


@asynccontextmanager
async def notifying_core(
    folder: Path, receivers: Receiver | dict[str, str] | None, *hooks: WebhookSettings,
    deadlines: WebhookDeadlines = LOOKS_OFTEN, **changes: Any,
) -> AsyncIterator[Core]:  # fmt: skip
    """A front with these endpoints, or one; HOST is at the receiver, or each host where the dict says."""
    resolve = receivers if isinstance(receivers, dict) else {HOST: receivers.address} if receivers else {}
    settings = {"webhooks": hooks or (hook(),), "egress": EgressSettings(resolve), **changes}
    front = front_core(folder, *ECHO_AND_DIE, deadlines=replace(PATIENT, webhooks=deadlines), **settings)
    async with front as core, delivering(core, deadlines):
        yield core


@asynccontextmanager
async def delivering(
    core: Core, deadlines: WebhookDeadlines = LOOKS_OFTEN, gone: list[str] | None = None
) -> AsyncIterator[Deliverer]:
    """A deliverer beside a front, in the test's own process; its supervisor hands on what the front has it try.

    The names of endpoints that answer 410 are added to `gone`.
    """
    gone = [] if gone is None else gone
    settings, client = core.services.settings, BreakableClient(DELIVERERS)
    post = open_post(settings.version, settings.egress.unsafe_resolve)
    endpoints, outbox = open_endpoints(settings.webhooks), Outbox(client)
    deliverer = Deliverer(endpoints, settings.version, post, core.clock, outbox, gone.append, deadlines)
    client.on_woken = deliverer.wake
    core.deliverer = client

    async def tried(request: TryWebhook, seconds: float) -> WebhookTried:
        with trio.fail_after(seconds):
            return await deliverer.tried(request)

    core.services.control.try_webhook = tried  # type: ignore[method-assign]  # no supervisor reads its control channel
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(client.run)
            client.attach(core.notary_thread.attach_deliverer())
            await client.wait_greeted(60)
            nursery.start_soon(deliverer.run)
            yield deliverer
            nursery.cancel_scope.cancel()
    finally:
        client.close()


def kept(folder: Path, table: str) -> list[dict[str, Any]]:
    """Rows of `outbox` or `given_up` as they lie in the file, oldest first."""
    with closing(sqlite3.connect(folder / "ledger.sqlite3")) as ledger:
        ledger.row_factory = sqlite3.Row
        return [dict(row) for row in ledger.execute(f"SELECT * FROM {table} ORDER BY seq")]


async def settled(folder: Path) -> None:
    with trio.fail_after(PATIENCE):
        while kept(folder, "outbox"):  # noqa: ASYNC110
            await trio.sleep(0.005)


async def event_ids(core: Core, **filters: Any) -> list[str]:
    return [event["event_id"] for event in reversed(await core.events(**filters))]


def named(logs: Iterable[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [one for one in logs if one["event"] == event]


def asker(core: Core) -> BreakableClient:
    """The way to the notary of the deliverer that is at work beside this front."""
    assert core.deliverer is not None
    return core.deliverer


def counted(core: Core, name: str = "chat") -> dict[str, int]:
    """Attempts by outcome and drops by reason, as the notary has counted them, as far as there were any."""
    backlog = core.notary_thread.state.backlog
    return {**backlog.attempts.get(name, {}), **backlog.drops.get(name, {})}
