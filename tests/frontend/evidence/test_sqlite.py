"""The embedded ledger: what it keeps, what it refuses, and what it answers."""

import hashlib
import json
import random
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from frontend.clock import iso
from frontend.evidence import reading
from frontend.evidence.ledger import AlreadyRecorded, EventQuery, GrantConsumed, Ledger, OutboxRow
from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.conftest import OpenLedger, stored
from tests.frontend.evidence.samples import NOW, make_event, make_intent, make_receipt, record_call


async def test_it_is_a_ledger(ledger: SqliteLedger) -> None:
    promised: Ledger = ledger
    assert await promised.health()


async def test_each_event_carries_the_hash_of_the_bytes_before_it(ledger: SqliteLedger, ledger_path: Path) -> None:
    for number in range(5):
        await ledger.append(make_event(reason=f"é {number}"))
    raw = stored(ledger_path)
    assert json.loads(raw[0])["prev_hash"] is None
    for before, after in pairwise(raw):
        assert json.loads(after)["prev_hash"] == "sha256:" + hashlib.sha256(before).hexdigest()
    assert (await ledger.verify()).intact


async def test_one_call_writes_receipt_event_outbox_and_resolves_its_intent(
    ledger: SqliteLedger, ledger_path: Path
) -> None:
    intent = make_intent()
    await ledger.begin(intent)
    assert await ledger.unresolved_count() == 1
    (view,) = await ledger.unresolved(10)
    assert msgspec.structs.asdict(view) == {
        "intent_id": intent.intent_id, "trace_id": intent.trace_id, "action_id": intent.action_id,
        "principal": intent.principal, "dispatched_at": intent.dispatched_at, "age_seconds": view.age_seconds,
        "grant_id": intent.grant_id, "provider_module": intent.provider_module,
    }  # fmt: skip
    receipt = make_receipt()
    event = make_event(receipt_id=receipt.receipt_id, intent_id=intent.intent_id)
    row = OutboxRow(event.event_id, "action.executed", "chat", "{}")
    await ledger.record(receipt=receipt, event=event, outbox=(row,), intent_id=intent.intent_id)
    assert await ledger.unresolved_count() == 0
    assert await ledger.unresolved(10) == []
    assert await ledger.receipt(receipt.receipt_id) == receipt
    assert await ledger.receipt("rcpt_none") is None
    assert stored(ledger_path, "SELECT event_id, kind, endpoint, payload, attempts, due FROM outbox") == [
        (event.event_id, "action.executed", "chat", "{}", 0, NOW * 1000)
    ]
    assert len(stored(ledger_path, "SELECT 1 FROM intents")) == 1


async def test_intents_are_shown_oldest_first_with_their_age(ledger_path: Path) -> None:
    ledger = await SqliteLedger.open(ledger_path, clock=lambda: NOW + 100)
    intents = [make_intent(dispatched_at=iso(NOW + number)) for number in range(4)]
    for intent in intents:
        await ledger.begin(intent)
    assert [(view.intent_id, view.age_seconds) for view in await ledger.unresolved(3)] == [
        (intent.intent_id, 100 - number) for number, intent in enumerate(intents[:3])
    ]
    assert await ledger.unresolved_count() == 4
    await ledger.close()


async def test_a_grant_is_consumed_once(ledger: SqliteLedger, open_ledger: OpenLedger) -> None:
    intent = make_intent()
    await ledger.begin(intent)
    other = await open_ledger()
    for again in (make_intent(grant_id=intent.grant_id), intent, make_intent(intent_id=intent.intent_id)):
        with pytest.raises(GrantConsumed):
            await other.begin(again)
    assert await ledger.unresolved_count() == 1


async def test_a_used_grant_stays_used_after_its_intent_is_resolved(ledger: SqliteLedger) -> None:
    intent, _, _ = await record_call(ledger)
    with pytest.raises(GrantConsumed):
        await ledger.begin(make_intent(grant_id=intent.grant_id))


async def test_of_many_that_use_one_grant_at_once_one_succeeds(ledger: SqliteLedger, open_ledger: OpenLedger) -> None:
    other = await open_ledger()
    outcomes = []

    async def use(where: SqliteLedger) -> None:
        try:
            await where.begin(make_intent(grant_id="grant_1"))
            outcomes.append("had")
        except GrantConsumed:
            outcomes.append("consumed")

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(use, (ledger, other)[number % 2])
    assert sorted(outcomes) == ["consumed"] * 19 + ["had"]
    assert await ledger.unresolved_count() == 1


async def test_what_was_recorded_is_not_recorded_again(ledger: SqliteLedger, ledger_path: Path) -> None:
    intent, receipt, event = await record_call(ledger)
    with pytest.raises(AlreadyRecorded, match="intent"):
        await ledger.record(receipt=receipt, event=event, intent_id=intent.intent_id)
    second = make_intent()
    await ledger.begin(second)
    with pytest.raises(AlreadyRecorded, match="receipt"):
        await ledger.record(
            receipt=receipt, event=make_event(receipt_id=receipt.receipt_id, intent_id=second.intent_id),
            intent_id=second.intent_id,
        )  # fmt: skip
    assert await ledger.unresolved_count() == 1
    assert len(stored(ledger_path)) == 1
    assert (await ledger.verify()).intact


async def test_an_intent_that_nobody_wrote_is_not_resolved(ledger: SqliteLedger) -> None:
    with pytest.raises(AlreadyRecorded):
        await ledger.record(receipt=None, event=make_event(intent_id="intent_x"), intent_id="intent_x")
    assert (await ledger.verify()).total_events == 0


async def test_pieces_that_do_not_belong_together_are_refused(ledger: SqliteLedger) -> None:
    receipt = make_receipt()
    for event, intent_id in (
        (make_event(), None), (make_event(receipt_id="rcpt_other"), None),
        (make_event(receipt_id=receipt.receipt_id), "intent_x"),
        (make_event(receipt_id=receipt.receipt_id, intent_id="intent_y"), "intent_x"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="must name"):
            await ledger.record(receipt=receipt, event=event, intent_id=intent_id)
    with pytest.raises(ValueError, match="not a time"):
        await ledger.append(make_event(timestamp="yesterday"))
    with pytest.raises(ValueError, match="not a time"):
        await ledger.begin(make_intent(dispatched_at="2026-11-21T11:12:13Z"))


async def test_a_refused_operation_leaves_those_that_share_its_commit_alone(
    ledger: SqliteLedger, ledger_path: Path
) -> None:
    intent, _, _ = await record_call(ledger)
    before = len(stored(ledger_path))
    refused = []

    async def again() -> None:
        with pytest.raises(GrantConsumed):
            await ledger.begin(make_intent(grant_id=intent.grant_id))
        refused.append("begin")

    async def unknown() -> None:
        with pytest.raises(AlreadyRecorded):
            await ledger.record(receipt=None, event=make_event(intent_id="intent_x"), intent_id="intent_x")
        refused.append("record")

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(ledger.append, make_event())
            nursery.start_soon(again)
            nursery.start_soon(unknown)
            nursery.start_soon(record_call, ledger)
    assert len(refused) == 20
    report = await ledger.verify()
    assert (report.intact, report.total_events) == (True, before + 20)


async def test_an_approval_leads_to_its_intent_and_receipt(ledger: SqliteLedger) -> None:
    assert await ledger.intent_of_approval("apr_1") is None
    intent = make_intent(approval_id="apr_1")
    await ledger.begin(intent)
    view = await ledger.intent_of_approval("apr_1")
    assert view is not None
    assert view.intent_id == intent.intent_id
    assert await ledger.receipt_of_approval("apr_1") is None
    _, receipt, _ = await record_call(ledger, approval_id="apr_2")
    assert await ledger.receipt_of_approval("apr_2") == receipt.receipt_id
    assert await ledger.intent_of_approval("apr_2") is not None


async def test_the_newest_evidence_has_a_time(ledger: SqliteLedger) -> None:
    assert await ledger.last_time() is None
    await ledger.append(make_event(timestamp=iso(NOW + 5.125)))
    await ledger.append(make_event(timestamp=iso(NOW)))
    assert await ledger.last_time() == NOW + 5.125
    await ledger.begin(make_intent(dispatched_at=iso(NOW + 7.25)))
    assert await ledger.last_time() == NOW + 7.25


FILTERS: dict[str, list[Any]] = {
    "trace_id": ["trc_0", "trc_1"],
    "action_id": ["text_digest", "spin", None],
    "principal": ["uid:1", "uid:2", None],
    "session_id": ["ses_1", "ses_2", None],
    "decision": ["allow", "deny", "error", None],
    "event_type": ["ActionCall", "AdminDrain"],
}


async def test_queries_answer_as_a_plain_filter_would(ledger: SqliteLedger, ledger_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(120):
        fields = {name: chance.choice(values) for name, values in FILTERS.items()}
        await ledger.append(make_event(**fields, timestamp=iso(NOW + chance.randrange(40) / 8)))
    events = [(number, json.loads(raw), raw) for number, raw in enumerate(stored(ledger_path))]

    def plainly(query: EventQuery) -> list[bytes]:
        found = [
            (event["timestamp"], number, raw) for number, event, raw in events
            if all(getattr(query, name) in (None, event.get(name)) for name in FILTERS)
            and (query.after is None or event["timestamp"] > iso(query.after))
            and (query.before is None or event["timestamp"] < iso(query.before))
        ]  # fmt: skip
        return [raw for _, _, raw in sorted(found, reverse=True)][: query.limit]

    sizes = set()
    for _ in range(300):
        asked = {name: chance.choice(values) for name, values in FILTERS.items() if chance.random() < 0.3}
        if chance.random() < 0.3:
            asked["after"] = NOW + chance.randrange(40) / 8
        if chance.random() < 0.3:
            asked["before"] = NOW + chance.randrange(40) / 8
        query = EventQuery(**asked, limit=chance.choice([1, 5, 100, 1000]))
        answer = await ledger.query(query)
        assert answer == plainly(query), query
        sizes.add(len(answer))
    assert len(sizes) > 10


@pytest.mark.parametrize("moment", [1763723533.123, 1999999999.007])
async def test_bounds_are_exclusive_to_the_millisecond(ledger: SqliteLedger, moment: float) -> None:
    for offset in (-0.001, 0, 0.001):
        await ledger.append(make_event(timestamp=iso(moment + offset)))
    (later,) = await ledger.query(EventQuery(after=moment))
    (earlier,) = await ledger.query(EventQuery(before=moment))
    assert json.loads(later)["timestamp"] == iso(moment + 0.001)
    assert json.loads(earlier)["timestamp"] == iso(moment - 0.001)


async def test_no_question_walks_the_whole_ledger(ledger: SqliteLedger, ledger_path: Path) -> None:
    await ledger.append(make_event())
    with closing(sqlite3.connect(ledger_path)) as connection:

        def plan(statement: str, values: Any = ()) -> str:
            return "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))

        bounds: dict[str, dict[str, float]] = {
            "": {}, " AND time>?": {"after": 1.0}, " AND time<?": {"before": 9.0},
            " AND time>? AND time<?": {"after": 1.0, "before": 9.0},
        }  # fmt: skip
        for name, values in FILTERS.items():
            for value in values:
                for terms, bound in bounds.items():
                    if value in (None, "allow", "ActionCall"):
                        continue
                    query = msgspec.structs.replace(EventQuery(**{name: value}), **bound)
                    answer = plan(*reading.event_statement(query))
                    assert f"({name}=?{terms})" in answer, answer
                    assert "TEMP B-TREE" not in answer
        for common in (EventQuery(), EventQuery(decision="allow"), EventQuery(event_type="ActionCall")):
            for terms, bound in bounds.items():
                answer = plan(*reading.event_statement(msgspec.structs.replace(common, **bound)))
                assert "events_by_time" in answer
                assert f"({terms.removeprefix(' AND ')})" in answer or not terms, answer
                assert "TEMP B-TREE" not in answer
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        reading.receipt_by_id(connection, "r")
        reading.receipt_id_of_approval(connection, "a")
        reading.intent_of_approval(connection, "a", NOW)
        reading.unresolved_intents(connection, 5, NOW)
        reading.newest_time(connection)
        connection.set_trace_callback(None)
        assert len(statements) == 6
        for statement in statements:
            # The newest of all by their number, and the few that are open, are no walk.
            is_short = statement.endswith("ORDER BY seq DESC LIMIT 1")
            assert is_short or "SCAN" not in plan(statement).replace("SCAN unresolved", ""), plan(statement)


async def test_verify_can_be_given_up(ledger: SqliteLedger) -> None:
    for _ in range(3):
        await ledger.append(make_event())
    with trio.CancelScope() as scope:
        scope.cancel()
        await ledger.verify()
    assert scope.cancelled_caught
    assert (await ledger.verify()).intact
