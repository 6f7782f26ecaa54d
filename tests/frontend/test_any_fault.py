"""One fault at a time, anywhere: whatever the notary does, a call has one price, one end, and evidence of both.

Every operation that a call, a decision of an operator, an expiry, a lease or a revocation asks, times everything that
may go wrong with it. The effects are read from the database itself.
"""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from ipc.approvals import TTL_SECONDS
from ipc.operations.evidence import TraceOfApproval
from ipc.operations.holds import GetHold, ListHolds
from ipc.operations.leases import ReadEpoch
from ipc.operations.status import ReadLedger
from ipc.settings import LimitSettings
from notary.ledger.settling import unsettled
from notary.peers.workers import WorkerLink
from tests.support.front_core import ALLOW, DENY, HOLD, Agent, Core, Fault, does_and_says, front_core, refuses, then
from tests.support.held_calls import held, state_of, told
from tests.support.proofs import Key

KINDS = (
    "unavailable", "refused", "silent, not done", "silent, done", "our fault", "clock breaks before",
    "clock breaks after", "cut before", "cut after", "cut meanwhile",
)  # fmt: skip
UNKNOWN = "silent, done"
"""With this fault the caller can't know the outcome, so its answer may differ from the evidence."""
CALLS = {"allowed": ALLOW, "held": HOLD, "denied": DENY, "no worker": ALLOW}
ENDS = {("allowed", "Close"): "allow", ("denied", "Refuse"): "policy_denied"}
"""How a call has ended that is cut at its last step."""

OF_CALLS = ("ReadBudget", "Open", "Close", "Refuse", "Hold", "GetHold")
OF_DECISIONS = ("UseProof", "GetHold", "MoveHold", "Open", "Close")

Cut = Callable[[], None]
Answer = tuple[int, Any] | None


def fault(kind: str, core: Core, cut: Cut) -> Fault:
    """Return the fault of one operation."""

    async def breaks_the_clock(operation: Any, args: Any, kwargs: Any) -> Any:
        core.clock.is_broken = True
        return await operation(*args, **kwargs)

    async def cut_before(operation: Any, args: Any, kwargs: Any) -> Any:
        cut()
        return await operation(*args, **kwargs)

    async def cut_meanwhile(operation: Any, args: Any, kwargs: Any) -> Any:
        trio.lowlevel.current_trio_token().run_sync_soon(cut)
        return await operation(*args, **kwargs)

    return {
        "unavailable": refuses(NotaryUnavailable("gone", "store")),
        "refused": refuses(NotaryRefused("no")),
        "silent, not done": refuses(NotarySilent("late")),
        "silent, done": does_and_says(NotarySilent("late")),
        "our fault": refuses(RuntimeError("ours")),
        "clock breaks before": breaks_the_clock,
        "clock breaks after": then(lambda: setattr(core.clock, "is_broken", True)),
        "cut before": cut_before,
        "cut after": then(cut),
        "cut meanwhile": cut_meanwhile,
    }[kind]


class Executions:
    """Intents whose worker has the word, which it does not take back: their plans run, or have run."""

    def __init__(self) -> None:
        self.ledger: Path | None = None
        self.intents: list[str] = []
        self.without_intent: list[str] = []

    def note(self, intent_id: str) -> None:
        """In the notary's thread: a worker is about to have the word."""
        assert self.ledger is not None
        with closing(sqlite3.connect(self.ledger)) as connection:
            kept = [row[0] for entry in unsettled(connection) for row in entry.intents]
            kept += [row[0] for row in connection.execute("SELECT intent_id FROM intents")]
        self.intents.append(intent_id)
        if intent_id not in kept:
            self.without_intent.append(intent_id)


@pytest.fixture
def executions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Executions]:
    """The executions that workers are permitted to run."""
    spy, give_word, take_back = Executions(), WorkerLink.give_word, WorkerLink.take_back

    def noted(worker: WorkerLink, intent_id: str, plan_hash: str, **how: bool) -> Any:
        spy.note(intent_id)
        return give_word(worker, intent_id, plan_hash, **how)

    def taken_back(worker: WorkerLink, only: str | None = None) -> list[str]:
        intent_ids = take_back(worker, only)
        for intent_id in intent_ids:
            spy.intents.remove(intent_id)
        return intent_ids

    monkeypatch.setattr(WorkerLink, "give_word", noted)
    monkeypatch.setattr(WorkerLink, "take_back", taken_back)
    yield spy
    assert spy.without_intent == []
    assert len(set(spy.intents)) == len(spy.intents), "executed twice"


@asynccontextmanager
async def broken(core: Core, operation: str, kind: str) -> AsyncIterator[None]:
    """The fault, around one request; then it is over, and the front has its rounds."""
    object.__setattr__(core.services, "rates", type(core.services.rates)())
    if len(core.desk.processes) and not core.services.pools.census()["compute"].idle:
        core.desk.start()  # in place of those that earlier faults have cost
    with trio.fail_after(60), trio.CancelScope() as scope:
        core.client.faults[operation] = fault(kind, core, scope.cancel)
        yield
    core.client.faults.clear()
    core.clock.is_broken = False
    for _ in range(2):
        await core.services.upkeep.round()


async def or_500(request: Awaitable[tuple[int, Any]]) -> Answer:
    """The answer as the HTTP skin gives it: 500 for what no handler caught."""
    try:
        return await request
    except RuntimeError:
        return 500, {"error": "internal_error"}


async def check_call(core: Core, agent: Agent, answer: Answer, ran: bool, unresolved: int, kind: str) -> list[str]:
    """Check one call of a fresh session with three calls, for any outcome; returns what it ended as."""
    events = await core.events(session_id=agent.session_id, event_type="ActionCall")
    codes = [event.get("error_code", event["decision"]) for event in events]
    receipts = [event["receipt_id"] for event in events if "receipt_id" in event]
    pending = [
        one
        for one in (await core.real.ask(ListHolds(("pending",), 200))).approvals
        if one.session_id == agent.session_id
    ]
    assert codes or (answer is not None and answer[0] >= 500), "no evidence, and nothing that says so"
    assert len(codes) <= 1, codes
    assert len(receipts) + len(pending) + unresolved <= 1
    assert ran == bool(receipts) or unresolved, "what ran has a receipt, or an intent that shows"
    assert "replay_detected" not in codes, "a call was held for a copy of itself"
    assert await core.remaining(agent) in prices(bool(receipts or pending), ran, unresolved), codes
    if answer is not None:
        assert (answer[0] == 200) <= bool(receipts)
        assert (answer[0] == 202) <= bool(pending)
        if answer[0] >= 400 and codes and kind != UNKNOWN:
            assert answer[1]["error"] in codes
    assert (await core.real.ask(ListHolds(("claimed",), 200))).approvals == []
    return codes


def prices(has_end: bool, ran: bool, unresolved: int) -> tuple[int, ...]:
    """Calls that may be left of three: two or three where an intent is unresolved and no worker executed it."""
    return (2,) if has_end or ran else (2, 3) if unresolved else (3,)


async def unresolved_intents(core: Core) -> int:
    return (await core.real.ask(ReadLedger())).unresolved


@pytest.mark.parametrize("way", list(CALLS))
@pytest.mark.parametrize("operation", OF_CALLS)
async def test_a_call_survives_any_one_fault(tmp_path: Path, executions: Executions, way: str, operation: str) -> None:
    workers = 0 if way == "no worker" else 2
    limits = LimitSettings(worker_wait_seconds=0.0 if way == "no worker" else 60.0)
    async with front_core(tmp_path, workers=workers, limits=limits) as core:
        executions.ledger, core.policy.answer = tmp_path / "ledger.sqlite3", CALLS[way]
        for kind in KINDS:
            agent = await core.agent(max_calls=3)
            answer: Answer = None
            ran_before, open_before = len(executions.intents), await unresolved_intents(core)
            async with broken(core, operation, kind):
                answer = await or_500(agent.call())
            try:
                ran, unresolved = len(executions.intents) > ran_before, await unresolved_intents(core) - open_before
                codes = await check_call(core, agent, answer, ran, unresolved, kind)
                assert not kind.startswith("cut") or codes == [ENDS.get((way, operation), *codes)]
            except AssertionError as error:
                error.add_note(f"{operation}: {kind}, answered {answer}")
                raise


@pytest.mark.parametrize("verb", ["approve", "deny", "approve without a worker"])
@pytest.mark.parametrize("operation", OF_DECISIONS)
async def test_a_decision_survives_any_one_fault(
    tmp_path: Path, executions: Executions, verb: str, operation: str
) -> None:
    """With any fault the approval ends or waits, once, and its call is debited exactly when it ran."""
    verb, _, without = verb.partition(" ")
    limits = LimitSettings(worker_wait_seconds=0.0 if without else 60.0)
    async with front_core(tmp_path, workers=0 if without else 2, limits=limits) as core:
        executions.ledger = tmp_path / "ledger.sqlite3"
        for kind in KINDS:
            agent, approval_id = await held(core)
            answer: Answer = None
            ran_before, open_before = len(executions.intents), await unresolved_intents(core)
            async with broken(core, operation, kind):
                answer = await or_500(core.operate("POST", f"/v1/approvals/{approval_id}/{verb}"))
            try:
                ran, unresolved = len(executions.intents) > ran_before, await unresolved_intents(core) - open_before
                await check_decision(core, agent, approval_id, answer, ran, unresolved, kind)
                if answer is not None and answer[0] == 200:
                    assert await state_of(core, approval_id) == {"approve": "approved", "deny": "denied"}[verb]
            except AssertionError as error:
                error.add_note(f"{operation}: {kind}, answered {answer}")
                raise


async def check_decision(
    core: Core, agent: Agent, approval_id: str, answer: Answer, ran: bool, unresolved: int, kind: str
) -> None:
    """Check a held call after an operator has decided it, or has tried to."""
    record = await core.real.ask(GetHold(approval_id))
    trace = await core.real.ask(TraceOfApproval(approval_id))
    assert record is not None
    assert record.state in ("pending", "approved", "denied", "failed")
    assert (record.state == "approved") == (trace.receipt_id is not None)
    assert msgspec.json.decode(record.outcome).get("receipt_id") == trace.receipt_id
    is_paid = record.state == "pending" or trace.receipt_id is not None
    assert await core.remaining(agent) in prices(is_paid, ran, unresolved), record
    assert ran == (trace.receipt_id is not None) or unresolved
    ends = [one for one in await told(core, approval_id) if one[:2] != ("ActionCall", "pending_approval")]
    ends = [one for one in ends if one[0] in ("ActionCall", "ApprovalDenied")]
    if record.state == "pending":
        assert ends == []
    else:
        assert 1 <= len(ends) <= (2 if kind == UNKNOWN else 1), ends


EXPIRY = ("DueHolds", "MoveHold")


@pytest.mark.parametrize("operation", EXPIRY)
async def test_a_hold_that_is_over_ends_once_and_gives_its_call_back_whatever_fails(
    tmp_path: Path, operation: str
) -> None:
    async with front_core(tmp_path, workers=0, lease_ttl_seconds=3600) as core:  # the budget outlives the hold
        for kind in KINDS:
            agent, approval_id = await held(core)
            core.clock.ahead += TTL_SECONDS
            async with broken(core, operation, kind):
                await core.services.upkeep.round()
            assert await state_of(core, approval_id) == "expired", kind
            assert [event for event, *_ in await told(core, approval_id)].count("ApprovalExpired") == 1, kind
            assert await core.remaining(agent) == 3, kind


async def test_a_lease_and_its_event_are_there_together_whatever_fails(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        for kind in KINDS:
            before = len(await core.events(event_type="LeaseIssued", decision="allow"))
            answer: Answer = None
            async with broken(core, "Issue", kind):
                answer = await or_500(lease(core))
            told_of = len(await core.events(event_type="LeaseIssued", decision="allow")) - before
            if answer is None or kind == UNKNOWN:
                assert told_of in (0, 1), kind
            else:
                assert told_of == (1 if answer[0] == 200 else 0), (kind, answer)


async def lease(core: Core) -> tuple[int, Any]:
    body = {"scopes": ["tools:call"], "dpop_jwk": Key().jwk, "budgets": {"max_calls": 3}}
    answer = await core.ask("POST", "/v1/leases", body)
    return answer.status, msgspec.json.decode(answer.body)


async def test_the_epoch_rises_with_its_event_or_not_at_all_whatever_fails(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        for kind in KINDS:
            epoch, acts = await core.real.ask(ReadEpoch()), len(await core.events(event_type="AdminRevokeAll"))
            answer: Answer = None
            async with broken(core, "Revoke", kind):
                answer = await or_500(core.operate("POST", "/v1/admin/revoke-all"))
            risen = await core.real.ask(ReadEpoch()) - epoch
            assert risen == len(await core.events(event_type="AdminRevokeAll")) - acts <= 1, kind
            if answer is not None and kind != UNKNOWN:
                assert risen == (1 if answer[0] == 200 else 0), (kind, answer)
            assert core.services.known.epoch == await core.real.ask(ReadEpoch()), kind
