"""The public client package `latchgate`, unchanged, as the agent."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from latchgate import (
    LatchGateApprovalRequired,
    LatchGateBudgetExhausted,
    LatchGateClient,
    LatchGateDenied,
    LatchGateUnavailable,
)  # fmt: skip

from tests.support.gateway import Gateway


def with_client(gate: Gateway, story: Callable[[LatchGateClient], Awaitable[None]], **options: str) -> None:
    async def run() -> None:
        where = options or {"base_url": gate.base}
        async with LatchGateClient(agent_id="agent:tests", public_base_url=gate.base, **where) as client:
            await story(client)

    asyncio.run(run())


def test_it_executes_and_reads_its_receipt(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        result = await client.execute("text_digest", {"text": "hello"})
        assert result.verification["is_fully_successful"]
        receipt = await client.get_receipt(result.receipt_id)
        assert receipt.is_fully_successful
        assert receipt.provider_receipt == result.output

    with_client(gate, story)


def test_it_works_over_the_unix_socket(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        assert (await client.execute("text_digest", {"text": "hello"})).output["bytes"] == 5

    with_client(gate, story, socket=str(gate.ready["client_socket"]))


def test_it_hears_why_it_is_denied(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        with pytest.raises(LatchGateDenied, match="policy_denied: "):
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


def test_it_waits_for_an_approval_and_finds_the_receipt(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        payment = {"to": "acct-9", "amount_cents": 100, "currency": "EUR"}
        with pytest.raises(LatchGateApprovalRequired) as held:
            await client.execute("payment_transfer", payment)
        status = await client.get_approval_status(held.value.approval_id)
        assert status.is_pending
        assert status.retry_after_seconds
        answer = await asyncio.to_thread(gate.operator().post, f"/v1/approvals/{held.value.approval_id}/approve")
        assert answer.status_code == 200
        status = await client.get_approval_status(held.value.approval_id)
        assert status.is_approved
        assert status.receipt_id is not None
        assert (await client.get_receipt(status.receipt_id)).is_fully_successful

    with_client(gate, story)


def test_it_reads_where_an_action_may_go(gate: Gateway) -> None:
    async def story(client: LatchGateClient) -> None:
        assert not (await client.get_action_egress("text_digest")).has_egress

    with_client(gate, story)
