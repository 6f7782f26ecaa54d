"""One unit: who fails fails alone, parts that are damaged, disks that are full, wake-ups, and what memory follows."""

import os
from typing import Any

import jwt
import pytest
from msgspec.structs import replace

from ipc.channel.blocking import ChannelClosed
from ipc.evidence.records import EventQuery
from ipc.messages.delivering import Welcome
from ipc.messages.notarising import FrontDetached, NotaryReady
from ipc.operations.calls import ProofRecord, UseProof, Withdraw
from ipc.operations.deliveries import ClaimDeliveries, ListDeliveries, NextDelivery
from ipc.operations.evidence import QueryEvents
from ipc.operations.holds import GetHold
from ipc.operations.leases import ReadBudget, ReadEpoch
from ipc.operations.status import ReadLedger
from ipc.process.logs import log
from notary.backends.sqlite import FileLimits
from notary.opening import open_state
from notary.operations.table import PERFORMERS
from notary.units.runner import TransactionRunner, count_backlog
from notary.units.tasks import Task
from notary.units.transaction import Transaction
from tests.notary.conftest import StartNotary
from tests.notary.running import UNDISTURBED, Running, walk
from tests.notary.samples import (
    NOW,
    NOW_MS,
    UNTIL,
    call_event,
    changed,
    hooks,
    make_hold,
    make_issue,
    make_note,
    make_open,
    make_refuse,
    make_revoke,
    notify,
    record_call,
)
from tests.support.asking import Asker, Told
from tests.support.logs import capture_logs
from tests.support.notary_thread import LIMITS

NOT_CANONICAL = {"n": 2**60}
UNWRITABLE = make_note(budgets_before=NOT_CANONICAL)
IMPATIENT = replace(LIMITS, database=FileLimits(lock_seconds=0.05, reserved_pages=0))


def problem(front: Asker, operation: Any) -> tuple[str | None, str | None]:
    answered = front.heard(front.send(operation)[0])
    return answered.problem, answered.part if answered.problem else None


def test_an_operation_that_fails_takes_no_other_of_its_unit_with_it(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=50)).session_id
    asked: list[Any] = []
    for _ in range(10):
        asked += [
            make_note(), UNWRITABLE, Withdraw("intent_x", "error", "overloaded"),
            make_open(event=call_event(session_id=session_id), has_budget=True),
        ]  # fmt: skip
    told = [front.heard(number).problem for number in front.send(*asked)]
    assert told == [None, "refused", "refused", None] * 10
    assert front.ask(ReadBudget(session_id)).remaining == 40
    report = walk(front)
    assert (report.intact, report.total_events) == (True, 21)


def test_intents_and_events_of_a_call_are_logged_only_at_debug_level(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as lines:
        record_call(notary.front)
        monkeypatch.setattr(log, "says_details", True)
        asked, _ = record_call(notary.front)
    intent_line, event_line = (line for line in lines if line["log_level"] == "debug")
    call = {
        "trace_id": asked.event.trace_id, "action_id": asked.event.action_id, "intent_id": asked.intent_id,
        "log_level": "debug",
    }  # fmt: skip
    assert intent_line.pop("worker_id").startswith("worker-")
    assert intent_line == call | {"event": "an intent is in the ledger", "event_decision": asked.event.decision}
    assert event_line == call | {
        "event": "an event is in the ledger", "event_decision": "allow", "event_type": "ActionCall",
    }  # fmt: skip


def test_a_failed_operation_leaves_no_change(notary: Running) -> None:
    front, hold = notary.front, make_hold()
    for operation in (
        make_issue(max_calls=2, event=changed(make_issue().event, budgets_before=NOT_CANONICAL)),
        make_revoke(budgets_before=NOT_CANONICAL), make_refuse(ProofRecord("p", NOW), budgets_before=NOT_CANONICAL),
        changed(hold, event=changed(hold.event, budgets_before=NOT_CANONICAL)),
    ):  # fmt: skip
        with pytest.raises(Told, match="NotCanonical"):
            front.ask(operation)
    for table in ("events", "budgets", "proofs", "approvals"):
        assert notary.stored(f"SELECT * FROM {table}") == [], table
    assert front.ask(ReadEpoch()) == 0
    assert front.ask(UseProof(ProofRecord("p", NOW))).is_fresh, "what fails uses no proof"
    record_call(front)
    assert walk(front).intact


DAMAGE: dict[str, tuple[Any, str, list[Any]]] = {
    # table: what needs it, of which part, and what goes on (tests/notary/operations/test_parts.py has all that fails)
    "proofs": (UseProof(ProofRecord("p", NOW)), "store", [make_issue(max_calls=3), make_note(), make_refuse()]),
    "budgets": (
        make_issue(max_calls=3), "budget", [make_issue(), make_open(), UseProof(ProofRecord("p", NOW)), make_hold()],
    ),
    "approvals": (
        GetHold("apr_1"), "approvals",
        [make_issue(max_calls=3), make_open(), UseProof(ProofRecord("p", NOW)), make_refuse()],
    ),
    "outbox": (ListDeliveries(None, 5), "ledger", [make_open(), UseProof(ProofRecord("p", NOW)), make_hold()]),
}  # fmt: skip


@pytest.mark.parametrize("table", DAMAGE)
def test_a_missing_table_fails_what_needs_it_and_nothing_else(notary: Running, table: str) -> None:
    front, (fails, part, works) = notary.front, DAMAGE[table]
    with notary.stranger() as stranger:
        stranger.execute(f"ALTER TABLE {table} RENAME TO elsewhere")
        assert problem(front, fails) == ("unavailable", part)
        for operation in works:
            assert problem(front, operation)[0] is None, operation
        # The same in one unit.
        numbers = front.send(fails, *[make_note() for _ in range(3)])
        assert [front.heard(number).problem for number in numbers] == ["unavailable", None, None, None]
        stranger.execute(f"ALTER TABLE elsewhere RENAME TO {table}")
    assert problem(front, fails)[0] is None


def test_without_the_tables_of_the_store_leases_are_issued_in_the_epoch_in_force(notary: Running) -> None:
    front = notary.front
    epoch = front.ask(make_revoke()).current
    with notary.stranger() as stranger:
        for table in ("proofs", "epochs"):
            stranger.execute(f"ALTER TABLE {table} RENAME TO {table}_elsewhere")
        for _ in range(2):
            assert problem(front, make_open()) == ("unavailable", "store")
            claims = jwt.decode(front.ask(make_issue()).lease_jwt, options={"verify_signature": False})
            assert claims["epoch"] == epoch
        for table in ("proofs", "epochs"):
            stranger.execute(f"ALTER TABLE {table}_elsewhere RENAME TO {table}")
    assert problem(front, make_open())[0] is None


@pytest.mark.parametrize("table", ["events", "receipts", "unresolved"])
def test_while_evidence_can_not_come_to_its_table_nothing_more_is_written_and_nothing_is_lost(
    start_notary: StartNotary, table: str
) -> None:
    # Only an operation settles, so an operation that comes late finds the ledger unchanged.
    notary = start_notary(limits=replace(UNDISTURBED, quiet_seconds=3600.0))
    front = notary.front
    front.ask(ReadEpoch())  # it serves by now
    with notary.stranger() as stranger:
        stranger.execute(f"ALTER TABLE {table} RENAME TO elsewhere")
        record_call(front)
        front.begin(make_open())
        assert problem(front, QueryEvents(EventQuery())) == ("unavailable", "ledger")
        for operation in (make_note(), make_open(), UseProof(ProofRecord("p", NOW)), ReadLedger()):
            assert problem(front, operation)[0] == "unavailable", operation
        stranger.execute(f"ALTER TABLE elsewhere RENAME TO {table}")
    front.ask(make_note())
    assert front.ask(ReadLedger()).unresolved == 1
    assert (walk(front).intact, len(notary.events())) == (True, 2)
    assert len(notary.stored("SELECT 1 FROM intents")) == 2


def test_an_internal_error_is_reported_with_its_part_and_its_name_alone(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(unit: Transaction, asked: Any) -> None:
        raise RuntimeError("a secret text")

    handlers = notary.thread._service._units._handlers
    monkeypatch.setitem(handlers, type(make_note()), fails)
    answered = notary.front.heard(notary.front.send(make_note())[0])
    assert (answered.problem, answered.part, answered.cause) == ("fault", "ledger", "RuntimeError")


def test_while_the_file_is_locked_nothing_is_written_and_then_it_goes_on(start_notary: StartNotary) -> None:
    notary = start_notary(limits=IMPATIENT)
    front = notary.front
    with notary.stranger() as stranger, capture_logs() as lines:
        stranger.execute("BEGIN IMMEDIATE")
        answers = [front.heard(number) for number in front.send(*[make_note()] * 5, UseProof(ProofRecord("p", NOW)))]
        assert {(answered.problem, answered.part) for answered in answers} == {("unavailable", "ledger")}
        assert "locked" in (answers[0].cause or "")
        with pytest.raises(Told, match="locked"):
            front.ask(ReadLedger())
        stranger.execute("ROLLBACK")
        assert front.ask(ReadLedger()).unresolved == 0
        assert front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
    assert [line["event"] for line in lines].count("the database can be written again") == 1
    assert walk(front).total_events == 0


def test_a_notary_that_starts_does_not_say_that_its_database_can_be_written_again(start_notary: StartNotary) -> None:
    with capture_logs() as lines:
        start_notary().front.ask(make_note())
    assert "the database can be written again" not in [line["event"] for line in lines]


def test_a_unit_that_finds_the_file_locked_waits_for_it_once_and_not_for_each_operation(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    notary.stop()
    (state, _), begun = open_state(notary.settings, limits=IMPATIENT), []
    begin = state.database.unit

    def counted(*, writes: bool, is_durable: bool) -> Any:
        begun.append(writes)
        return begin(writes=writes, is_durable=is_durable)

    monkeypatch.setattr(state.database, "unit", counted)
    units = TransactionRunner(state, PERFORMERS)
    with notary.stranger() as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        outcomes = units.perform([Task("front-1", number, make_note()) for number in range(5)])
        stranger.execute("ROLLBACK")
    assert [outcome.problem for outcome in outcomes] == ["unavailable"] * 5
    state.database.close()
    assert begun == [True]


def test_a_look_at_the_ledger_says_how_much_is_free_on_its_volume(notary: Running) -> None:
    volume = os.statvfs(notary.folder)
    free = notary.front.ask(ReadLedger()).free_bytes
    assert free is not None
    assert 0 < free <= volume.f_blocks * volume.f_frsize


# ------------------------------------------------------------------ deliveries


def test_the_deliverer_is_woken_for_what_any_front_queued(telling: Running) -> None:
    deliverer = telling.deliverer
    deliverer.ask(NextDelivery("chat"))
    for front in (telling.front, telling.attach("another")):
        notify(front)
    deliverer.ask(NextDelivery("chat"))
    assert [set(names) for names in deliverer.woken] == [{"chat", "pager"}] * 2
    assert deliverer.welcomes == [Welcome(telling.front.in_force[0].newest_evidence)]


def test_the_deliverer_is_woken_although_another_operation_of_the_unit_failed(telling: Running) -> None:
    front, deliverer = telling.front, telling.deliverer
    deliverer.ask(NextDelivery("chat"))
    for number in front.send(make_refuse(), UNWRITABLE, make_note()):
        front.heard(number)
    deliverer.ask(NextDelivery("chat"))
    assert [set(names) for names in deliverer.woken] == [{"chat", "pager"}]
    front.heard(front.send(UNWRITABLE)[0])
    deliverer.ask(NextDelivery("chat"))
    assert len(deliverer.woken) == 1, "and not once more for what failed"


@pytest.mark.parametrize("endpoints", [(), ("chat", "pager")], ids=["without webhooks", "with two endpoints"])
def test_a_fronts_answer_does_not_depend_on_the_number_of_endpoints(
    start_notary: StartNotary, endpoints: tuple[str, ...]
) -> None:
    # A long interval, so that no front learns of the call's beginning before its end.
    notary = start_notary(webhooks=hooks(*endpoints), limits=replace(LIMITS, begun_seconds=3600.0))
    front = notary.front
    if endpoints:
        notary.deliverer.ask(NextDelivery("chat"))
    front.ask(ReadEpoch())
    frames = front.frames
    for _ in range(3):
        record_call(front)
    front.ask(ReadEpoch())
    assert front.frames - frames == 4, "an answer for each call, one for the last question, and no other word"
    assert front.left_now() == set()


@pytest.mark.parametrize("operation", [make_note(), ReadLedger(), ListDeliveries(None, 5), make_refuse()])
def test_a_deliverer_that_asks_for_anything_but_deliveries_loses_its_channel(telling: Running, operation: Any) -> None:
    deliverer = telling.deliverer
    with pytest.raises((ChannelClosed, ConnectionError)):
        deliverer.ask(operation)
    while (told := telling.thread.hears()) == NotaryReady():
        continue
    assert told == FrontDetached("deliverer-1")
    assert [event["event_type"] for event in telling.events()] == []
    notify(telling.front)


@pytest.mark.parametrize("operation", [NextDelivery("chat"), ClaimDeliveries("chat", NOW_MS, UNTIL, 5)])
def test_a_front_that_asks_for_deliveries_loses_its_channel(telling: Running, operation: Any) -> None:
    front = telling.attach("another")
    with pytest.raises((ChannelClosed, ConnectionError)):
        front.heard(front.send(operation)[0])


def test_rolled_back_deliveries_count_neither_as_waiting_nor_as_dropped(telling: Running) -> None:
    front, backlog = telling.front, telling.thread.state.backlog
    for number in front.send(*[make_refuse()] * 3, UNWRITABLE):
        front.heard(number)
    assert backlog.waiting == {"chat": 3, "pager": 3}
    with telling.stranger() as stranger:
        stranger.execute("ALTER TABLE outbox RENAME TO elsewhere")
        assert problem(front, make_refuse()) == ("unavailable", "ledger")
        stranger.execute("ALTER TABLE elsewhere RENAME TO outbox")
    assert backlog.waiting == {"chat": 3, "pager": 3} == front.ask(ReadLedger()).waiting


def test_waiting_deliveries_are_counted_while_another_process_writes(telling: Running) -> None:
    notify(telling.front)
    telling.stop()
    state, _ = open_state(telling.settings, limits=IMPATIENT)
    with telling.stranger() as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        count_backlog(state)
        stranger.execute("ROLLBACK")
    state.database.close()
    assert state.backlog.waiting == {"chat": 1, "pager": 1}
