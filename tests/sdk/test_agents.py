"""The agent's clients against a running gateway: both transports, threads, asyncio and trio."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
import trio
from gateway_client import (
    ActionFailed,
    Address,
    AgentClient,
    ApprovalDenied,
    AsyncAgentClient,
    Denied,
    Executed,
    GatewayError,
    Invalid,
    LeaseTerms,
    NotFound,
    OperatorClient,
)

from tests.sdk.conftest import until
from tests.support.gateway import Gateway, wait_for

PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


def payment(amount_cents: int) -> dict[str, object]:
    return PAYMENT | {"amount_cents": amount_cents}


def test_an_agent_discovers_calls_and_reads_its_receipt(agent_address: Address) -> None:
    with AgentClient(agent_address) as agent:
        assert agent.session is None
        assert agent.health()
        wait_for(lambda: agent.ready().is_ready, "a gateway that is ready")
        assert "text_digest" in [action.action_id for action in agent.actions()]
        manifest = agent.manifest("text_digest")
        assert (manifest.action_id, manifest.version, manifest.risk_level) == ("text_digest", "1.0.0", "low")
        assert agent.request_schema("text_digest")["type"] == "object"
        assert [key["kty"] for key in agent.lease_keys().keys] == ["EC"]
        done = agent.execute("text_digest", {"text": "hello"})
        assert isinstance(done, Executed)
        assert done.output["bytes"] == 5
        assert done.is_fully_successful
        assert done.runtime is not None
        receipt = agent.receipt(done.receipt_id)
        assert receipt.is_fully_successful
        assert receipt.provider_receipt == done.output
        assert receipt.signature_status == "verified"
        assert agent.session is not None
        assert agent.session.session_id.startswith("ses_")


def test_an_agent_previews_its_call_where_the_manifest_lets_it(agent_address: Address) -> None:
    with AgentClient(agent_address) as agent:
        preview = agent.preview("text_digest", {"text": "hello"})
        assert (preview.decision, preview.principal, preview.sends) == ("allow", "dev:anonymous", None)
        with pytest.raises(Denied) as refused:
            agent.preview("payment_transfer", PAYMENT)
        assert refused.value.code == "policy_denied"

    async def ask() -> str:
        async with AsyncAgentClient(agent_address) as agent:
            return (await agent.preview("text_digest", {"text": "hello"})).trace_id

    assert asyncio.run(ask()).startswith("trc_")


async def is_ready(agent: AsyncAgentClient) -> bool:
    return (await agent.ready()).is_ready


async def async_story(address: Address) -> None:
    async with AsyncAgentClient(address) as agent:
        assert await agent.health()
        await until(lambda: is_ready(agent))
        assert await agent.actions()
        assert (await agent.manifest("text_digest")).action_id == "text_digest"
        done = await agent.execute("text_digest", {"text": "hello"})
        assert isinstance(done, Executed)
        assert (await agent.receipt(done.receipt_id)).is_fully_successful
        with pytest.raises(Denied):
            await agent.execute("forbidden_export", {"table": "customers"})
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(agent.execute, "text_digest", {"text": str(number)})


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_asynchronous_agent_does_the_same_under(backend: str, agent_address: Address) -> None:
    anyio.run(async_story, agent_address, backend=backend)


def test_errors_come_by_code(agent: AgentClient) -> None:
    with pytest.raises(Denied, match=r"policy_denied \(403\): exports of tables") as denied:
        agent.execute("forbidden_export", {"table": "customers"})
    assert denied.value.trace_id is not None
    assert not denied.value.may_have_run
    with pytest.raises(Invalid) as invalid:
        agent.execute("text_digest", {"text": 1})
    assert (invalid.value.code, invalid.value.reason) == ("schema_violation", "/text: must be a string")
    with pytest.raises(NotFound) as missing:
        agent.execute("nothing")
    assert missing.value.code == "action_not_found"
    with pytest.raises(ActionFailed) as failed:
        agent.execute("http_fetch", {"path": "/status/503"})
    assert (failed.value.code, failed.value.may_have_run) == ("action_execution_failed", True)
    assert (failed.value.failure, failed.value.effect) == ("upstream_status", "yes")
    with pytest.raises(NotFound, match="receipt_not_found"):
        agent.receipt("rcpt_none")
    with pytest.raises(NotFound, match="approval_not_found"):
        agent.poll("apr_none")
    with pytest.raises(NotFound, match="action_not_found"):
        agent.request_schema("nothing")


def test_scopes_are_asked_for_as_the_terms_say(gate: Gateway) -> None:
    with AgentClient(gate.base, terms=LeaseTerms(scopes=("reports:read",))) as agent, pytest.raises(GatewayError):
        agent.execute("text_digest", {"text": ""})


def test_many_threads_share_one_client_and_one_lease(gate: Gateway) -> None:
    before = len(gate.events(event_type="LeaseIssued", limit=1000))
    outcomes: list[object] = []
    with AgentClient(gate.base) as agent:

        def call(number: int) -> None:
            outcomes.append(agent.execute("text_digest", {"text": "x" * number}))

        threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert sum(isinstance(one, Executed) for one in outcomes) == 8
    assert len(gate.events(event_type="LeaseIssued", limit=1000)) == before + 1


def pending(operator: OperatorClient, amount_cents: int) -> str | None:
    for item in operator.approvals(status="pending").approvals:
        request = operator.approval(item.approval_id).request
        if request["amount_cents"] == amount_cents:
            return item.approval_id
    return None


def test_held_calls_wait_for_their_operator_and_end_as_was_decided(gate: Gateway, operator: OperatorClient) -> None:
    address = Address.parse(f"unix://{gate.ready['client_socket']}", gate.base)
    with AgentClient(address) as agent, ThreadPoolExecutor(2) as pool:
        calls = [
            pool.submit(agent.execute, "payment_transfer", payment(amount), wait_for_approval=True)
            for amount in (100, 101)
        ]
        good, bad = (wait_for(lambda: pending(operator, amount), "the hold") for amount in (100, 101))  # noqa: B023
        operator.deny(bad, "not today")
        approved = operator.approve(good)
        done = calls[0].result(120)
        with pytest.raises(ApprovalDenied) as raised:
            calls[1].result(120)
    assert (done.receipt_id, done.output) == (approved.receipt_id, approved.output)
    assert (done.verification_outcome, done.approval_id) == ("verified", good)
    assert done.is_fully_successful
    assert (raised.value.code, raised.value.reason, raised.value.approval_id) == ("approval_denied", "not today", bad)


@pytest.mark.parametrize("run", [trio.run, asyncio.run], ids=["trio", "asyncio"])
def test_nothing_that_is_logged_shown_or_raised_holds_a_token_or_proof(
    gate: Gateway, caplog: pytest.LogCaptureFixture, run: Callable[..., object]
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[object] = []

    async def story() -> None:
        async with AsyncAgentClient(gate.base) as agent:
            shown.append(await agent.execute("text_digest", {"text": "x"}))
            with pytest.raises(Denied) as raised:
                await agent.execute("forbidden_export", {"table": "x"})
            shown.extend([raised.value, vars(raised.value), agent, agent.session, agent._core.leases.current])
            token.append(str(agent._core.leases.current and agent._core.leases.current.token))

    token: list[str] = []
    started: Awaitable[None] | Callable[[], Awaitable[None]] = story if run is trio.run else story()
    run(started)
    with AgentClient(gate.base) as agent:
        shown.append(agent.execute("text_digest", {"text": "x"}))
        lease = agent._core.leases.current
        assert lease is not None
        token.append(lease.token)
        shown.append((agent, lease))
    text = "".join(repr(one) + str(one) for one in shown) + caplog.text
    assert "httpcore" in text
    assert not [one for one in token if one in text or one.rpartition(".")[2] in text]
    assert "DPoP " not in text
    assert "PRIVATE" not in text
