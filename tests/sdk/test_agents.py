"""The agent's clients against a running gateway: both transports, threads, asyncio and trio."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest
import trio
from gateway_client import (
    ActionFailed,
    Address,
    AgentClient,
    ApprovalDenied,
    ApprovalPending,
    AsyncAgentClient,
    AuthenticationFailed,
    Clock,
    Denied,
    Executed,
    GatewayError,
    Held,
    Invalid,
    LeaseTerms,
    NotFound,
    OperatorClient,
    ProofKey,
)
from gateway_client.agent_core import AgentCore

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


def test_a_proof_for_another_url_is_refused_with_a_name(gate: Gateway) -> None:
    with AgentClient(Address.parse(gate.base, "http://elsewhere.test")) as agent:
        with pytest.raises(AuthenticationFailed) as raised:
            agent.execute("text_digest", {"text": ""})
        assert raised.value.code == "invalid_dpop"


def test_a_budget_that_is_gone_is_denied_until_the_program_begins_another_session(gate: Gateway) -> None:
    with AgentClient(gate.base, terms=LeaseTerms(max_calls=1)) as agent:
        agent.execute("text_digest", {"text": "1"})
        with pytest.raises(Denied, match="budget_exhausted"):
            agent.execute("text_digest", {"text": "2"})
        before = agent.session
        assert agent.renew() != before
        agent.execute("text_digest", {"text": "2"})


def test_scopes_are_asked_for_as_the_terms_say(gate: Gateway) -> None:
    with AgentClient(gate.base, terms=LeaseTerms(scopes=("reports:read",))) as agent, pytest.raises(GatewayError):
        agent.execute("text_digest", {"text": ""})


def test_a_lease_is_renewed_by_the_clients_own_clock(gate: Gateway) -> None:
    # Proofs are made with the true time; what the lease's life is judged by stands still.
    with AgentClient(gate.base, clock=Clock()) as agent:
        agent.execute("text_digest", {"text": ""})
        core: AgentCore = agent._core
        first, lease = agent.session, core.leases.current
        assert lease is not None
        core.clock = Clock(now=lambda: lease.expires_at - 61)
        agent.execute("text_digest", {"text": ""})
        assert agent.session == first
        core.clock = Clock(now=lambda: lease.expires_at - 59)
        agent.execute("text_digest", {"text": ""})
        assert agent.session != first


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


def test_a_key_file_lets_another_process_be_the_same_agent(gate: Gateway, tmp_path: Path) -> None:
    for _ in range(2):
        with AgentClient(gate.base, ProofKey.load_or_create(tmp_path / "agent.pem")) as agent:
            assert agent.execute("text_digest", {"text": ""})


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


def test_a_wait_that_is_too_short_leaves_the_hold_to_be_polled(gate: Gateway, operator: OperatorClient) -> None:
    ahead = [0.0]  # the time that is given is over as soon as the call is held
    with AgentClient(gate.base, clock=Clock(monotonic=lambda: time.monotonic() + ahead[0])) as agent:
        _wait_too_short(agent, operator, ahead)


def _wait_too_short(agent: AgentClient, operator: OperatorClient, ahead: list[float]) -> None:
    with pytest.raises(ApprovalPending) as raised:
        agent.execute(
            "payment_transfer", payment(103), wait_for_approval=True, timeout=600,
            on_held=lambda _: ahead.__setitem__(0, 1000.0),
        )  # fmt: skip
    approval_id = raised.value.approval_id
    assert approval_id is not None
    assert agent.poll(approval_id).state == "pending"
    again = agent.execute("payment_transfer", payment(103))
    assert isinstance(again, Held)
    assert again.approval_id == approval_id
    agent.renew()
    assert agent.poll(approval_id).state == "pending"
    receipt_id = operator.approve(approval_id).receipt_id
    assert agent.poll(approval_id).receipt_id == receipt_id
    assert agent.outcome(again, "payment_transfer").receipt_id == receipt_id


def test_the_outcome_of_a_hold_of_another_session_can_not_be_waited_for(agent: AgentClient) -> None:
    held = agent.execute("payment_transfer", payment(104))
    assert isinstance(held, Held)
    with AgentClient(agent._address) as other, pytest.raises(ApprovalPending, match=r"lease .* has run out") as raised:
        other.outcome(held, "payment_transfer")
    assert (raised.value.approval_id, raised.value.trace_id) == (held.approval_id, held.trace_id)


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
