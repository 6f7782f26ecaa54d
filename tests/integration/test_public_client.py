"""The public client package `latchgate`, unchanged: every method that speaks to a gateway, and every error it knows."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from latchgate import (
    ActionResult,
    ApprovalStatus,
    EgressProfile,
    ExecutionReceipt,
    LatchGateApprovalRequired,
    LatchGateAuthError,
    LatchGateBudgetExhausted,
    LatchGateClient,
    LatchGateDenied,
    LatchGateLeaseExpired,
    LatchGateNotConnected,
    LatchGateReplayDetected,
    LatchGateTransportError,
    LatchGateUnavailable,
)  # fmt: skip
from latchgate._crypto import DPoPKeyPair, compute_ath

from tests.support.forged_leases import Mint
from tests.support.gateway import Gateway, gateway

Story = Callable[[LatchGateClient], Awaitable[None]]
PAYMENT = {"to": "acct-9", "amount_cents": 100, "currency": "EUR"}


def with_client(gate: Gateway, story: Story, **options: Any) -> None:
    """Tell a story to a client: on TCP, unless the options say otherwise."""

    async def run() -> None:
        where = options or {"base_url": gate.base}
        settings = {"agent_id": "agent:tests", "public_base_url": gate.base} | where
        async with LatchGateClient(**settings) as client:
            await story(client)

    asyncio.run(run())


async def held(client: LatchGateClient, **changes: Any) -> str:
    """A payment that waits; its approval's id."""
    with pytest.raises(LatchGateApprovalRequired) as caught:
        await client.execute("payment_transfer", PAYMENT | changes)
    assert caught.value.action_id == "payment_transfer"
    return str(caught.value.approval_id)


async def decide(gate: Gateway, approval_id: str, verb: str, body: Any = None) -> int:
    """The operator's actions meanwhile."""
    answer = await asyncio.to_thread(gate.operator().post, f"/v1/approvals/{approval_id}/{verb}", body)
    return answer.status_code


# ------------------------------------------------------------------------------------------------ leases


def test_it_connects_and_knows_its_lease(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        assert (client.session_id, client.lease_jti) == (None, None)
        await client.connect(agent_id="agent:other", scopes=["tools:call"], max_calls=3)
        assert str(client.session_id).startswith("ses_")
        assert str(client.lease_jti).startswith("lea_")
        assert client._lease_expires_at is not None
        assert 3000 < (client._lease_expires_at - datetime.now(UTC)).total_seconds() <= 3600
        assert client.gate_url == gate.base
        assert (await client.http_transport.get(f"{client.gate_url}/healthz")).json() == {"status": "ok"}

    with_client(gate, story)


def test_calls_at_once_share_one_lease(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        results = await asyncio.gather(*(client.execute("text_digest", {"text": str(n)}) for n in range(5)))
        traces = {result.trace_id for result in results}
        events = await asyncio.to_thread(gate.events, session_id=client.session_id, event_type="ActionCall")
        assert {event["trace_id"] for event in events} == traces
        assert len(traces) == 5

    with_client(gate, story)


def test_without_a_name_it_must_connect_first(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        with pytest.raises(LatchGateNotConnected):
            await client.execute("text_digest", {"text": "x"})
        await client.connect()
        assert (await client.execute("text_digest", {"text": "x"})).receipt_id

    with_client(gate, story, base_url=gate.base, agent_id=None)


def test_it_finds_the_gateway_by_its_environment(gate: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: LatchGateClient) -> None:
        assert (await client.execute("text_digest", {"text": "hello"})).output["bytes"] == 5

    monkeypatch.setenv("LATCHGATE_URL", gate.base)
    with_client(gate, story, public_base_url=None)


@pytest.fixture(scope="module")
def default_gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway at the client's default address. The last test of this module drains it."""
    folder: Path = tmp_path_factory.mktemp("runtime")
    where = f'listen_uds_path = "{folder / "latchgate" / "gate.sock"}"\npublic_base_url = "http://localhost:3000"\n'
    with gateway(folder, where) as running:
        yield running


def test_it_finds_the_socket_by_itself(default_gate: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: LatchGateClient) -> None:
        assert (await client.execute("text_digest", {"text": "hello"})).output["bytes"] == 5
        assert client._lease_expires_at is not None
        assert 0 < (client._lease_expires_at - datetime.now(UTC)).total_seconds() <= 300, "unless it is told otherwise"

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(default_gate.state.parent))
    with_client(default_gate, story, public_base_url="http://localhost:3000")


# ------------------------------------------------------------------------------------------------ calls


def test_it_executes_and_reads_its_receipt(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        result = await client.execute("text_digest", {"text": "hello"})
        assert isinstance(result, ActionResult)
        assert result.verification == {"outcome": "unverifiable_declared", "is_fully_successful": True}
        assert set(result.runtime) == {"duration_ms", "exit_code", "fuel_consumed"}
        assert result.grant_id.startswith("grant_")
        receipt = await client.get_receipt(result.receipt_id)
        assert isinstance(receipt, ExecutionReceipt)
        assert receipt.is_fully_successful
        assert (receipt.provider_receipt, receipt.grant_id) == (result.output, result.grant_id)
        assert receipt.provider_module.startswith("sha256:")
        assert receipt.failure_class is None
        assert datetime.fromisoformat(receipt.started_at) <= datetime.fromisoformat(receipt.finished_at)

    with_client(gate, story)


def test_it_works_over_the_unix_socket(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        assert (await client.execute("text_digest", {"text": "hello"})).output["bytes"] == 5

    with_client(gate, story, socket=str(gate.ready["client_socket"]))


def test_no_parameters_are_an_empty_object(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        assert (await client.execute("spin")).output == {"fuel": 0, "memory_mb": 0, "seconds": 0}

    with_client(gate, story)


def test_it_hears_why_it_is_denied(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        with pytest.raises(LatchGateDenied, match="policy_denied: exports of tables"):
            await client.execute("forbidden_export", {"table": "customers"})
        with pytest.raises(LatchGateDenied, match="schema_violation: "):
            await client.execute("text_digest", {"text": 1})
        with pytest.raises(LatchGateUnavailable, match="action_not_found"):
            await client.execute("nothing", {})
        with pytest.raises(LatchGateUnavailable, match="action_execution_failed"):
            await client.execute("http_fetch", {"path": "/status/503"})

    with_client(gate, story)


def test_it_hears_that_its_budget_is_gone(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        await client.connect(max_calls=1, max_cost_usd_cents=5)
        await client.execute("text_digest", {"text": "1"})
        with pytest.raises(LatchGateBudgetExhausted):
            await client.execute("text_digest", {"text": "2"})

    with_client(gate, story)


# ------------------------------------------------------------------------------------------------ authentication


def test_it_tells_the_ways_of_not_being_authenticated_apart(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        await client.connect()
        good = str(client._lease_jwt)
        now = int(time.time())
        client._lease_jwt = Mint.of(gate.state, good).claims(iat=now - 600, nbf=now - 600, exp=now - 300)
        with pytest.raises(LatchGateLeaseExpired):
            await client.execute("text_digest", {"text": "x"})
        client._lease_jwt = good[:-6] + "AAAAAA"
        with pytest.raises(LatchGateAuthError) as caught:
            await client.execute("text_digest", {"text": "x"})
        assert caught.value.code == "invalid_lease"
        client._lease_jwt = good
        headers = client._dpop_headers("POST", "/v1/actions/text_digest/execute")
        client._dpop_headers = lambda *_: headers
        await client.execute("text_digest", {"text": "x"})
        with pytest.raises(LatchGateReplayDetected):
            await client.execute("text_digest", {"text": "x"})

    with_client(gate, story)


def test_a_proof_for_another_address_is_an_authentication_error(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        with pytest.raises(LatchGateAuthError) as caught:
            await client.execute("text_digest", {"text": "x"})
        assert caught.value.code == "invalid_dpop"

    with_client(gate, story, base_url=gate.base, public_base_url="http://elsewhere.test")


def test_nobody_there_is_a_transport_error(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        with pytest.raises(LatchGateTransportError):
            await client.execute("text_digest", {"text": "x"})

    with_client(gate, story, base_url="http://127.0.0.1:1")


def test_its_keys_and_proofs_serve_an_operator_too(gate: Gateway) -> None:
    pair = DPoPKeyPair.from_pem_file(gate.ready["operator"]["private_key_file"])
    token = gate.ready["operator"]["key"]
    url = f"{gate.base}/v1/admin/status"
    headers = {"Authorization": f"DPoP {token}", "DPoP": pair.sign_proof("GET", url, compute_ath(token))}
    assert gate.http.get("/v1/admin/status", headers=headers).json()["status"] == "ok"


# ------------------------------------------------------------------------------------------------ approvals


def test_it_waits_for_an_approval_and_finds_the_receipt(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        approval_id = await held(client)
        status = await client.get_approval_status(approval_id)
        assert isinstance(status, ApprovalStatus)
        assert (status.is_pending, status.approval_id) == (True, approval_id)
        assert status.action_id == "payment_transfer"
        assert status.retry_after_seconds
        assert await decide(gate, approval_id, "approve") == 200
        status = await client.get_approval_status(approval_id)
        assert status.is_approved
        assert status.receipt_id is not None
        assert (await client.get_receipt(status.receipt_id)).is_fully_successful

    with_client(gate, story)


def test_it_hears_that_it_was_denied_and_why(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        approval_id = await held(client, amount_cents=101)
        assert await decide(gate, approval_id, "deny", {"reason": "too much"}) == 200
        status = await client.get_approval_status(approval_id)
        assert (status.is_denied, status.reason) == (True, "too much")

    with_client(gate, story)


def test_it_hears_that_an_approval_came_to_nothing(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        approval_id = await held(client, amount_cents=102)
        with closing(sqlite3.connect(gate.state / "ledger.sqlite3", isolation_level=None, timeout=60)) as store:
            change = "update approvals set body = replace(body, 'acct-9', 'acct-6') where approval_id = ?"
            assert store.execute(change, (approval_id,)).rowcount == 1
        assert await decide(gate, approval_id, "approve") == 409
        status = await client.get_approval_status(approval_id)
        assert (status.status, status.reason) == ("failed", "plan_integrity")
        assert not any((status.is_pending, status.is_approved, status.is_denied))

    with_client(gate, story)


def test_its_lease_and_its_holds_end_with_revoke_all(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        approval_id = await held(client, amount_cents=104)
        answer = await asyncio.to_thread(gate.operator().post, "/v1/admin/revoke-all")
        assert answer.status_code == 200
        with pytest.raises(LatchGateAuthError, match="invalid_lease"):
            await client.get_approval_status(approval_id)
        await client.connect()
        assert (await client.execute("text_digest", {"text": "x"})).receipt_id

    with_client(gate, story)


def test_what_is_not_there_is_denied_by_name(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        with pytest.raises(LatchGateDenied, match="'rcpt_none' not found"):
            await client.get_receipt("rcpt_none")
        with pytest.raises(LatchGateDenied, match="'apr_none' not found"):
            await client.get_approval_status("apr_none")
        with pytest.raises(LatchGateDenied, match="'nothing' not found"):
            await client.get_action_egress("nothing")
        approval_id = await held(client, amount_cents=103)
        await client.connect()
        with pytest.raises(LatchGateDenied, match="approval_session_mismatch"):
            await client.get_approval_status(approval_id)

    with_client(gate, story)


# ------------------------------------------------------------------------------------------------ discovery


def test_it_reads_where_an_action_may_go(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        assert await client.get_action_egress("text_digest") == EgressProfile("none")
        egress = await client.get_action_egress("http_post")
        assert egress.has_egress
        assert egress.allowed_domains == ["upstream.gateway.test"]

    with_client(gate, story)


# ------------------------------------------------------------------------------------------------ the end


def test_it_hears_that_the_gateway_leaves(default_gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        await client.connect()
        answer = await asyncio.to_thread(default_gate.operator().post, "/v1/admin/drain")
        assert answer.json()["draining"] is True
        with pytest.raises(LatchGateUnavailable, match="draining"):
            await client.execute("text_digest", {"text": "x"})
        with pytest.raises(LatchGateUnavailable, match="draining"):
            await client.connect()

    with_client(default_gate, story, base_url=default_gate.ready["base_url"])
