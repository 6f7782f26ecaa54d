"""One fault at a time, anywhere: whatever breaks, a call has one price, one event, and no hold without evidence."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from frontend.evidence.ledger import AlreadyRecorded, LedgerUnavailable
from frontend.stores.interface import StoreUnavailable
from tests.support.front_core import ALLOW, HOLD, Agent, Core, Fault, does_and_says, front_core, refuses, then

STORE = (
    "check_in",
    "budget_read",
    "budget_debit",
    "budget_refund",
    "epoch",
    "approval_pending",
    "approval_hold",
    "approval_move",
)
LEDGER = ("begin", "record", "append")
KINDS = ("refuses", "does and is late", "our fault", "clock breaks", "cut before", "cut after")
UNKNOWN = ("budget_refund does and is late", "budget_refund cut before")
"""Where nobody can know whether the call was given back: at most once."""
Cut = Callable[[], None]


def fault(kind: str, part: str, core: Core, cut: Cut) -> Fault:
    gone: Exception = StoreUnavailable("gone") if part == "store" else LedgerUnavailable("gone")

    async def cut_before(operation: Any, args: Any, kwargs: Any) -> Any:
        cut()
        await trio.lowlevel.checkpoint_if_cancelled()
        return await operation(*args, **kwargs)

    return {
        "refuses": refuses(gone),
        "does and is late": does_and_says(gone),
        "our fault": refuses(RuntimeError("ours") if part == "store" else AlreadyRecorded("ours")),
        "clock breaks": then(lambda: setattr(core.clock, "is_broken", True)),
        "cut before": cut_before,
        "cut after": then(cut),
    }[kind]


async def settle(core: Core) -> None:
    """The fault is over, and the front has had its rounds."""
    core.store.faults.clear()
    core.ledger.faults.clear()
    core.clock.is_broken = False
    for _ in range(2):
        await core.services.upkeep.round()


def without_late(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what says that evidence failed, where that evidence came all the same: nobody could know."""
    told = [event for event in events if event.get("error_code") != "evidence_persistence_failed"]
    return told or events


async def check_call(core: Core, agent: Agent, answer: Any, name: str) -> None:
    events = without_late(await core.events(session_id=agent.session_id, event_type="ActionCall"))
    codes = [event.get("error_code", event["decision"]) for event in events]
    no_evidence = answer is not None and answer[0] >= 500
    assert len(events) == 1 or (no_evidence and not events), (name, answer, codes)
    remaining = await core.remaining(agent)
    assert remaining in (2, 3), (name, remaining)
    pending = [one for one in await core.store.approval_list(("pending",), 200) if one.session_id == agent.session_id]
    receipts = [event for event in events if "receipt_id" in event]
    unresolved = [one for one in await core.ledger.unresolved(1000) if one.trace_id in {e["trace_id"] for e in events}]
    if answer is not None and answer[0] in (200, 202):
        assert remaining == 2, (name, answer)
        assert bool(receipts) == (answer[0] == 200)
    if receipts or pending:
        assert remaining == 2, (name, "it ran, or will, and was given back")
    if pending:
        assert codes == ["pending_approval"], (name, codes)
    refunds = await core.events(session_id=agent.session_id, event_type="BudgetRollbackFailed")
    if remaining == 2 and answer is not None and answer[0] not in (200, 202):
        assert receipts or unresolved or refunds or no_evidence, (name, answer, codes)


@pytest.mark.parametrize("held", [False, True], ids=["allowed", "held"])
async def test_a_call_survives_any_one_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool) -> None:
    monkeypatch.setattr("frontend.auth.epochs.FRESH_SECONDS", -1)  # the last look is always taken
    async with front_core(tmp_path, workers=2) as core:
        core.policy.answer = HOLD if held else ALLOW
        for (part, operation), kind in itertools.product(
            [("store", one) for one in STORE] + [("ledger", one) for one in LEDGER], KINDS
        ):
            object.__setattr__(core.services, "rates", type(core.services.rates)())
            agent = await core.agent(max_calls=3)
            answer = None
            with trio.CancelScope() as scope:
                getattr(core, part).faults[operation] = fault(kind, part, core, scope.cancel)
                answer = await agent.call()
            await settle(core)
            await check_call(core, agent, answer, f"{operation} {kind}")


@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_a_decision_survives_any_one_fault(tmp_path: Path, verb: str) -> None:
    """Whatever breaks, the approval ends or still waits, once, and its call is paid for exactly when it ran."""
    async with front_core(tmp_path, workers=2) as core:
        core.policy.answer = HOLD
        for (part, operation), kind in itertools.product(
            [("store", one) for one in ("check_in", "epoch", "budget_refund", "approval_move")]
            + [("ledger", one) for one in LEDGER],
            KINDS,
        ):
            name = f"{operation} {kind}"
            object.__setattr__(core.services, "rates", type(core.services.rates)())
            agent = await core.agent(max_calls=3)
            _, hold = await agent.call()
            answer: tuple[int, Any] | None = None
            with trio.CancelScope() as scope:
                getattr(core, part).faults[operation] = fault(kind, part, core, scope.cancel)
                try:
                    answer = await core.operate("POST", f"/v1/approvals/{hold['approval_id']}/{verb}")
                except (RuntimeError, AlreadyRecorded):
                    answer = (500, None)  # as the HTTP skin answers what no handler caught
            await settle(core)
            record = await core.store.approval_get(hold["approval_id"])
            assert record.state in ("pending", "approved", "denied", "failed"), (name, record.state)
            receipt_id = await core.ledger.receipt_of_approval(hold["approval_id"])
            intent = await core.ledger.intent_of_approval(hold["approval_id"])
            may_have_run = intent is not None and name != "begin does and is late"
            lost = bool(await core.events(session_id=agent.session_id, event_type="BudgetRollbackFailed"))
            is_paid = record.state == "pending" or receipt_id is not None or may_have_run or lost
            if name not in UNKNOWN:
                assert await core.remaining(agent) == (2 if is_paid else 3), (name, record)
            if receipt_id is not None:
                assert record.state == ("approved" if answer is None or answer[0] in (200, 500) else "failed"), name
                assert msgspec.json.decode(record.outcome).get("receipt_id") in (receipt_id, None)
            if answer is not None and answer[0] == 200:
                assert record.state == {"approve": "approved", "deny": "denied"}[verb], (name, record.state)
            ends = [e for e in await core.events(session_id=agent.session_id) if e["decision"] != "pending_approval"]
            ends = [e for e in ends if e["event_type"] in ("ActionCall", "ApprovalDenied")]
            assert len(without_late(ends)) <= 1, (
                name,
                [(e["event_type"], e["decision"], e.get("error_code")) for e in ends],
            )
