"""The operator's clients against a running gateway: evidence, approvals, and the running of it."""

import asyncio
import inspect

import pytest
import trio
from gateway_client import (
    Address,
    AgentClient,
    AsyncOperatorClient,
    EventFilter,
    Held,
    Invalid,
    NotFound,
    OperatorClient,
    OperatorCredential,
    ProofKey,
)
from gateway_client.calling.core import DEFAULT_LIMITS
from gateway_client.operating.core import OperatorCore
from gateway_client.operating.paging import Paging
from gateway_client.wire.flows import SYSTEM_CLOCK

from tests.sdk.conftest import until
from tests.support.gateway import wait_for
from tests.support.played_gateway import World, answer


def hold(agent: AgentClient, amount_cents: int) -> Held:
    held = agent.execute("payment_transfer", {"to": "acct-7", "amount_cents": amount_cents, "currency": "EUR"})
    assert isinstance(held, Held)
    return held


def test_an_operator_reads_the_state_and_the_evidence(
    operator_address: Address, credential: OperatorCredential, agent: AgentClient
) -> None:
    done = agent.execute("text_digest", {"text": "hello"})
    assert not isinstance(done, Held)
    with OperatorClient(operator_address, credential) as operator:
        assert operator.health()
        wait_for(lambda: operator.ready().is_ready, "a gateway that is ready")
        assert operator.manifest("text_digest").action_id in [one.action_id for one in operator.actions()]
        status = wait_for(lambda: one if (one := operator.status()).status == "ok" else None, "a status of ok")
        assert (status.draining, status.dependencies["redis"]) == (False, True)
        assert status.webhooks is not None
        event = operator.events(EventFilter(trace_id=done.trace_id)).events[0]
        assert (event.decision, event.action_id, event.receipt_id) == ("allow", "text_digest", done.receipt_id)
        verification = operator.verify_audit()
        assert verification.intact
        assert verification.events_checked > 0
        assert operator.receipt(done.receipt_id) == agent.receipt(done.receipt_id)
        assert operator.receipt_keys().keys[0]["kty"] == "OKP"
        assert operator.intents() == ()


def test_an_operator_approves_what_was_shown(
    operator_address: Address, credential: OperatorCredential, agent: AgentClient
) -> None:
    held = hold(agent, 201 if operator_address.socket else 202)
    with OperatorClient(operator_address, credential) as operator:
        listed = operator.approvals(status="pending", limit=1).approvals[0]
        assert (listed.approval_id, listed.risk_level) == (held.approval_id, "critical")
        detail = operator.approval(held.approval_id)
        assert detail.approved_targets == ("POST http://upstream.gateway.test/v1/transfers",)
        assert detail.approved_secrets == ("bank_token",)
        assert detail.request_hash == held.request_hash
        done = operator.approve(held.approval_id)
        assert done.approval is not None
        assert (done.approval.approved_by, done.approval.approval_hash) == ("dev", detail.plan_hash)
        assert done.approval.operator_sender_binding == credential.key.thumbprint
        with pytest.raises(NotFound) as raised:
            operator.approve(held.approval_id)
        assert raised.value.code == "approval_not_found"


def test_an_operator_denies_with_a_reason(operator: OperatorClient, agent: AgentClient) -> None:
    held = hold(agent, 203)
    denial = operator.deny(held.approval_id, "not today")
    assert (denial.denied_by, denial.deny_reason, denial.trace_id) == ("dev", "not today", held.trace_id)
    polled = agent.poll(held.approval_id)
    assert (polled.state, polled.deny_reason, polled.is_decided) == ("denied", "not today", True)
    assert operator.deny(hold(agent, 204).approval_id).deny_reason is None


def test_every_event_is_read_once_whatever_the_size_of_a_page(operator: OperatorClient, agent: AgentClient) -> None:
    for number in range(5):
        agent.execute("text_digest", {"text": str(number)})
    assert agent.session is not None
    where = EventFilter(session_id=agent.session.session_id)
    whole = [event.event_id for event in operator.events(where, 1000).events]
    assert len(whole) == 6
    for size in (1, 2, 3, 6, 1000):
        assert [event.event_id for event in operator.iter_events(where, size)] == whole
    after = EventFilter(after="2999-01-01T00:00:00Z")
    assert list(operator.iter_events(after)) == []


def events_page(ids: list[int], millisecond: int) -> dict[str, object]:
    stamp = f"2026-11-21T11:12:13.{millisecond:03}Z"
    events = [{"event_id": f"evt_{one}", "event_type": "x", "timestamp": stamp, "prev_hash": None} for one in ids]
    return {"events": events, "count": len(events)}


def test_events_of_one_millisecond_are_neither_lost_nor_repeated_at_the_edge_of_a_page() -> None:
    pages = [
        events_page([9, 8], 5), events_page([9, 8, 7, 6], 5), events_page([7, 6, 5], 5), events_page([], 5),
    ]  # fmt: skip
    world = World(replies=[answer(200, page) for page in pages])
    core = OperatorCore(
        Address.parse("http://g"), OperatorCredential("k", ProofKey.generate()), DEFAULT_LIMITS, SYSTEM_CLOCK
    )
    paging = Paging(core, EventFilter(), 2)
    assert [event.event_id for event in world.run(paging.next_page())] == ["evt_9", "evt_8"]
    assert [event.event_id for event in world.run(paging.next_page())] == ["evt_7", "evt_6"]
    assert "before=2026-11-21T11%3A12%3A13.006Z" in world.paths()[1]


def test_a_page_that_large_events_made_short_is_not_the_last() -> None:
    pages = [events_page([9, 8], 5), events_page([7], 4), events_page([7, 6], 3), events_page([6], 3)]
    world = World(replies=[answer(200, page) for page in pages])
    core = OperatorCore(
        Address.parse("http://g"), OperatorCredential("k", ProofKey.generate()), DEFAULT_LIMITS, SYSTEM_CLOCK
    )
    paging, seen = Paging(core, EventFilter(kept={"/a": "x", "/b/c": "1"}), 5), list[str]()
    while found := world.run(paging.next_page()):
        seen += [event.event_id for event in found]
    assert seen == ["evt_9", "evt_8", "evt_7", "evt_6"]
    assert "kept.%2Fa=x&kept.%2Fb%2Fc=1" in world.paths()[0]


def test_a_page_of_events_has_bounds(operator: OperatorClient) -> None:
    for size in (0, 1001):
        with pytest.raises(ValueError, match="1000"):
            list(operator.iter_events(page_size=size))
    with pytest.raises(Invalid, match="limit"):
        operator.events(limit=1001)
    with pytest.raises(Invalid, match="status"):
        operator.approvals(status="wrong")


async def is_ok(operator: AsyncOperatorClient) -> bool:
    return (await operator.status()).status == "ok"


async def async_story(address: Address, credential: OperatorCredential) -> None:
    async with AsyncOperatorClient(address, credential) as operator:
        await until(lambda: is_ok(operator))
        assert (await operator.verify_audit()).intact
        event_ids = [event.event_id async for event in operator.iter_events(page_size=7)]
        assert len(event_ids) == len(set(event_ids)) >= 1
        async for _ in operator.iter_events():
            break
        with pytest.raises(NotFound):
            await operator.approve("apr_none")


@pytest.mark.parametrize("run", ["asyncio", "trio"])
def test_the_asynchronous_operator_does_the_same_under(
    run: str, operator_address: Address, credential: OperatorCredential
) -> None:
    if run == "trio":
        trio.run(async_story, operator_address, credential)
    else:
        asyncio.run(async_story(operator_address, credential))


def test_both_clients_have_every_call_with_its_documentation_and_types() -> None:
    calls = {
        name: one
        for name, one in inspect.getmembers(OperatorCore, inspect.isgeneratorfunction)
        if not name.startswith("_") and name not in {"ask", "read", "write", "change"}
    }
    assert len(calls) == 58
    for client in (OperatorClient, AsyncOperatorClient):
        for name, flow in calls.items():
            method = getattr(client, name)
            assert method.__doc__ == flow.__doc__
            assert method.__doc__
            assert "Flow" not in str(inspect.signature(method))
            assert "Generator" not in str(inspect.signature(method))
