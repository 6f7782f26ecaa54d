"""Gateways on one ledger with different webhooks: none gives up what waits for an endpoint of another one."""

import pytest

from ipc.operations.deliveries import ListDeliveries
from ipc.operations.status import ReadLedger
from notary.upkeep.orphans import SHARED_SECONDS
from tests.notary.conftest import StartNotary
from tests.notary.samples import NOW_MS, claim, hooks, make_note, notify
from tests.support.gateway import wait_for

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]


def test_a_gateway_without_an_endpoint_leaves_its_deliveries_to_the_one_that_has_it(start: StartNotary) -> None:
    one, other = start("one", webhooks=hooks("chat")), start("other")
    notify(one.front)
    other.clock.time += SHARED_SECONDS - 60
    front = other.restart()
    for _ in range(2):
        front.ask(make_note())
    assert front.ask(ListDeliveries(None, 9)).waiting == {"chat": 1}
    assert [delivery.endpoint for delivery in claim(one.deliverer, now=NOW_MS)] == ["chat"]


def test_a_delivery_that_has_been_due_for_a_week_has_no_endpoint_at_any_gateway(start: StartNotary) -> None:
    one, other = start("one", webhooks=hooks("chat")), start("other")
    notify(one.front)
    one.clock.time = other.clock.time = other.clock.time + SHARED_SECONDS
    notify(one.front)
    front = other.restart()
    wait_for(lambda: front.ask(ReadLedger()).drops == {"other": {"not_configured": 1}}, "the older one given up")
    assert front.ask(ListDeliveries(None, 9)).waiting == {"chat": 1}
