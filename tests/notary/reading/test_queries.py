"""Questions to the ledger: answered as a plain filter would, and without a walk along everything."""

import json
import random
from typing import Any

import msgspec
import pytest

from ipc.evidence.records import EventQuery
from ipc.operations.evidence import QueryEvents, ShowReceipt
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ReadEpoch
from ipc.operations.status import ReadLedger
from ipc.process.clock import iso
from notary.reading import queries
from notary.reading.source import NotReadable, Source, opened
from tests.notary.running import Running, query, stored
from tests.notary.samples import NOW, make_note, make_open, make_refuse, record_call
from tests.support.asking import Told

FILTERS: dict[str, list[Any]] = {
    "trace_id": ["trc_0", "trc_1"],
    "action_id": ["text_digest", "spin", None],
    "principal": ["uid:1", "uid:2", None],
    "session_id": ["ses_1", "ses_2", None],
    "decision": ["allow", "deny", "error"],
    "event_type": ["ActionCall", "AdminDrain"],
}


def note(notary: Running, at: float, **fields: Any) -> None:
    notary.clock.time = at
    notary.front.ask(make_note(**fields))


def read_on(notary: Running, wanted: EventQuery) -> list[bytes]:
    """Events of one read after the other, as a front goes on."""
    answer = list[bytes]()
    while True:
        found = notary.front.ask(QueryEvents(wanted))
        answer += found.events
        if found.looked_until is None:
            return answer
        limit = wanted.limit - len(found.events)
        wanted = msgspec.structs.replace(wanted, before=found.looked_until, limit=limit)


def write(notary: Running, at: float, event_type: str, decision: str, **fields: Any) -> None:
    """An event of this kind, by the operation that writes such."""
    if event_type != "ActionCall":
        note(notary, at, event_type=event_type, decision=decision, **fields)
    elif decision == "allow" and None not in fields.values():
        notary.clock.time = at
        record_call(notary.front, **fields)
    else:
        notary.clock.time = at
        notary.front.ask(make_refuse(**fields, decision="deny" if decision == "allow" else decision))


@pytest.mark.parametrize("looked_at", [queries.LOOKED_AT, 7], ids=["at once", "by several reads"])
def test_queries_answer_as_a_plain_filter_would(
    notary: Running, looked_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "LOOKED_AT", looked_at)
    chance = random.Random(7)
    for _ in range(120):
        fields = {name: chance.choice(values) for name, values in FILTERS.items()}
        write(notary, NOW + chance.randrange(40) / 8, **fields)
    events = [(number, json.loads(raw), raw) for number, raw in enumerate(stored(notary.path))]

    def plainly(query: EventQuery) -> list[bytes]:
        matches = [
            (event["timestamp"], number, raw) for number, event, raw in events
            if all(getattr(query, name) in (None, event.get(name)) for name in FILTERS)
            and (query.after is None or event["timestamp"] > iso(query.after))
            and (query.before is None or event["timestamp"] < iso(query.before))
        ]  # fmt: skip
        return [raw for _, _, raw in sorted(matches, reverse=True)][: query.limit]

    sizes = set()
    for _ in range(300):
        asked = {name: chance.choice(values) for name, values in FILTERS.items() if chance.random() < 0.3}
        if chance.random() < 0.3:
            asked["after"] = NOW + chance.randrange(40) / 8
        if chance.random() < 0.3:
            asked["before"] = NOW + chance.randrange(40) / 8
        wanted = EventQuery(**asked, limit=chance.choice([1, 5, 100, 1000]))
        answer = read_on(notary, wanted)
        assert answer == plainly(wanted), wanted
        sizes.add(len(answer))
    assert len(sizes) > 10


@pytest.mark.parametrize("moment", [1763723533.123, 1999999999.007])
def test_bounds_are_exclusive_to_the_millisecond(notary: Running, moment: float) -> None:
    for offset in (-0.001, 0, 0.001):
        note(notary, moment + offset)
    (later,) = query(notary.front, after=moment)
    (earlier,) = query(notary.front, before=moment)
    assert json.loads(later)["timestamp"] == iso(moment + 0.001)
    assert json.loads(earlier)["timestamp"] == iso(moment - 0.001)
    assert query(notary.front, after=moment + 0.0005) == [later]
    assert query(notary.front, before=moment - 0.0005) == [earlier]


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ({"action_id": "busy", "decision": "deny"}, "events_by_decision"),
        ({"principal": "uid:busy", "action_id": "rare"}, "events_by_action"),
        ({"principal": "uid:busy", "event_type": "AdminDrain"}, "events_by_type"),
        ({"principal": "uid:rare", "action_id": "busy"}, "events_by_principal"),
        ({"principal": "uid:busy", "action_id": "busy", "decision": "allow"}, "events_by_principal"),
        ({"principal": "uid:busy", "decision": "deny", "before": 1.0}, "events_by_principal"),
    ],
    ids=str,
)
def test_events_of_several_filters_are_looked_for_by_the_rarest(
    notary: Running, asked: dict[str, Any], index: str
) -> None:
    row = (
        "INSERT INTO events (event_id, event_type, time, trace_id, principal, session_id, action_id, decision, bytes)"
        " VALUES ('e', 'ActionCall', ?, 't', ?, 's', ?, ?, x'00')"
    )
    with notary.stranger() as connection:
        busy = [(10_000 + number, "uid:busy", "busy", "allow") for number in range(queries.MOST_COUNTED + 9)]
        rare = [(50_000, "uid:busy", "busy", "deny"), (50_001, "uid:rare", "rare", "allow")]
        connection.executemany(row, [*busy, *rare])
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        queries.events_of(connection, EventQuery(**asked))
        connection.set_trace_callback(None)
    assert f"INDEXED BY {index} WHERE" in statements[-1]


def test_one_read_looks_at_few_of_the_events_of_filters_that_no_event_passes_together(notary: Running) -> None:
    row = (
        "INSERT INTO events (event_id, event_type, time, trace_id, action_id, decision, bytes)"
        " VALUES ('e', 'ActionCall', ?, 't', ?, ?, x'00')"
    )
    count = 3 * queries.LOOKED_AT
    with notary.stranger() as connection:
        connection.execute("BEGIN")
        connection.executemany(row, ((2 * number, "busy", "allow") for number in range(count)))
        connection.executemany(row, ((2 * number + 1, "other", "deny") for number in range(count)))
        connection.execute("COMMIT")
        wanted = EventQuery(action_id="busy", decision="deny")
        assert queries.found_events(connection, wanted).looked_until == (count - queries.LOOKED_AT - 1) * 2 / 1000
        assert len(queries.found_events(connection, EventQuery(action_id="busy", limit=count)).events) == count
    assert read_on(notary, wanted) == []


def test_no_question_walks_the_whole_ledger(notary: Running) -> None:
    notary.front.ask(make_note())
    with notary.stranger() as connection:

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
                    answer = plan(*queries.event_statement(query))
                    assert f"({name}=?{terms})" in answer, answer
                    assert "TEMP B-TREE" not in answer
        for common in (EventQuery(), EventQuery(decision="allow"), EventQuery(event_type="ActionCall")):
            for terms, bound in bounds.items():
                answer = plan(*queries.event_statement(msgspec.structs.replace(common, **bound)))
                assert "events_by_time" in answer
                assert f"({terms.removeprefix(' AND ')})" in answer or not terms, answer
                assert "TEMP B-TREE" not in answer
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        queries.receipt_by_id(connection, "r")
        queries.receipt_id_of_approval(connection, "a")
        queries.has_intent_of_approval(connection, "a")
        queries.unresolved_intents(connection, 5, NOW)
        queries.newest_time(connection)
        connection.set_trace_callback(None)
        assert len(statements) == 7
        for statement in statements:
            # The newest of all by their number or time, and the few that are open, are no walk.
            is_short = statement.endswith(("ORDER BY seq DESC LIMIT 1", "ORDER BY time DESC LIMIT 1"))
            assert is_short or "SCAN" not in plan(statement).replace("SCAN unresolved", ""), plan(statement)


def test_intents_are_shown_newest_first_with_their_age(notary: Running) -> None:
    front, asked = notary.front, [make_open() for _ in range(4)]
    for one in asked:
        front.begin(one)
        notary.clock.time += 1
    assert [(view.intent_id, view.age_seconds) for view in front.ask(ListUnresolved(3))] == [
        (one.intent_id, age) for age, one in enumerate(reversed(asked[1:]), start=1)
    ]
    assert front.ask(ReadLedger()).unresolved == 4
    notary.clock.time -= 3600.0  # set back: nothing is younger than now
    assert [view.age_seconds for view in front.ask(ListUnresolved(9))] == [0] * 4


def test_the_newest_evidence_of_event_or_intent_is_what_no_clock_may_be_before(notary: Running) -> None:
    assert newest(notary) == 0.0
    note(notary, NOW + 5.125)
    note(notary, NOW)
    assert newest(notary) == NOW + 5.125
    notary.clock.time = NOW + 7.25
    notary.front.begin(make_open())
    assert newest(notary) == NOW + 7.25


def newest(notary: Running) -> float:
    """The state that the next notary tells its fronts."""
    front = notary.restart()
    front.ask(ReadEpoch())
    return front.in_force[0].newest_evidence


def test_a_stored_receipt_that_makes_no_sense_is_a_ledger_that_can_not_be_read(notary: Running) -> None:
    _, closed = record_call(notary.front)
    before = notary.front.ask(ShowReceipt(closed.receipt_id)).receipt
    assert notary.stored("SELECT bytes FROM receipts") == [before]
    notary.execute("UPDATE receipts SET bytes = ?", b'{"receipt_id":7}')
    with pytest.raises(Told, match="the stored receipt makes no sense") as told:
        notary.front.ask(ShowReceipt(closed.receipt_id))
    assert (told.value.problem, told.value.part) == ("unavailable", "ledger")
    assert notary.front.ask(ShowReceipt("rcpt_none")) is None


def test_a_reader_of_a_file_can_not_write_it(notary: Running) -> None:
    with pytest.raises(NotReadable, match="readonly database"), opened(Source(str(notary.path))) as reading:
        reading.execute("INSERT INTO meta (key, value) VALUES ('mine', '')")
    assert notary.stored("SELECT count(*) FROM meta WHERE key = 'mine'") == [0]
