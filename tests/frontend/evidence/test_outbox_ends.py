"""What every outbox promises of what was claimed: it arrives, is put off or given up, and too late is too late."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from frontend.clock import iso
from frontend.evidence.outbox import MAX_GIVEN_UP
from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.conftest import OpenLedger, stored
from tests.frontend.evidence.samples import (
    NOW,
    NOW_MS,
    UNTIL,
    claim,
    claim_one,
    make_event,
    make_rows,
    notify,
    record_call,
)

GIVEN_UP = "SELECT event_id, kind, endpoint, payload, attempts, at, error FROM given_up ORDER BY seq"


async def test_who_comes_late_with_a_claim_that_has_passed_on_changes_nothing(
    ledger: SqliteLedger, open_ledger: OpenLedger, ledger_path: Path
) -> None:
    other = await open_ledger()
    await notify(ledger, "chat")
    late = await claim_one(ledger)
    second = await claim_one(other, now=UNTIL, until=UNTIL + 10)
    for _ in range(2):
        await ledger.outbox.delivered(late)
        await ledger.outbox.put_off(late, NOW_MS)
        await ledger.outbox.give_up(late, at=NOW_MS, error="late")
        assert await other.outbox.next_due("chat") == UNTIL + 10
        assert await other.outbox.waiting() == {"chat": 1}
    await other.outbox.delivered(second)
    # Its number is that of another delivery now, which has been claimed as often as the late one knows.
    event = await notify(ledger, "chat")
    new = await claim_one(other)
    assert (new.seq, new.attempt, new.event_id) == (late.seq, late.attempt, event.event_id)
    await ledger.outbox.delivered(late)
    await ledger.outbox.put_off(late, NOW_MS)
    await ledger.outbox.give_up(late, at=NOW_MS, error="late")
    assert await other.outbox.next_due("chat") == UNTIL
    assert stored(ledger_path, GIVEN_UP) == []


async def test_who_is_late_and_alone_still_says_what_became_of_it(ledger: SqliteLedger) -> None:
    await notify(ledger, "chat")
    late = await claim_one(ledger, until=NOW_MS)
    await ledger.outbox.delivered(late)
    assert await ledger.outbox.waiting() == {}


async def test_what_is_put_off_is_due_then_and_not_before(ledger: SqliteLedger) -> None:
    await notify(ledger, "chat")
    for attempt in range(1, 5):
        delivery = await claim_one(ledger, now=NOW_MS + 100 * attempt)
        assert delivery.attempt == attempt
        await ledger.outbox.put_off(delivery, NOW_MS + 100 * (attempt + 1))
        assert await ledger.outbox.next_due("chat") == NOW_MS + 100 * (attempt + 1)
        assert await claim(ledger, now=NOW_MS + 100 * (attempt + 1) - 1) == []


async def test_what_is_given_up_is_kept_with_a_sentence(ledger: SqliteLedger, ledger_path: Path) -> None:
    first = await notify(ledger, "chat", payload='{"n":1}')
    await ledger.outbox.put_off(await claim_one(ledger), NOW_MS)
    await ledger.outbox.give_up(await claim_one(ledger), at=NOW_MS + 7, error="it answered 410")
    second = await notify(ledger, "pager")
    await ledger.outbox.give_up((await claim(ledger, "pager"))[0], at=NOW_MS + 8, error="\udcff" + "x" * 5000)
    assert await ledger.outbox.waiting() == {}
    assert stored(ledger_path, GIVEN_UP) == [
        (first.event_id, "action.executed", "chat", '{"n":1}', 2, NOW_MS + 7, "it answered 410"),
        (second.event_id, "action.executed", "pager", "{}", 1, NOW_MS + 8, "\\udcff" + "x" * 499),
    ]


async def test_what_several_give_up_at_once_is_given_up_once(ledger: SqliteLedger, ledger_path: Path) -> None:
    await notify(ledger, "chat")
    held = await claim_one(ledger)
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ledger.append, make_event())
            await wait_all_tasks_blocked()
            for number in range(4):
                nursery.start_soon(lambda at: ledger.outbox.give_up(held, at=at, error="no"), number)
            await wait_all_tasks_blocked()
            stranger.execute("ROLLBACK")
    assert len(stored(ledger_path, GIVEN_UP)) == 1


async def test_of_what_is_given_up_the_newest_are_kept(ledger: SqliteLedger, ledger_path: Path) -> None:
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as connection:
        connection.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO given_up"
            " (event_id, kind, endpoint, payload, attempts, at, error) SELECT 'evt_' || i, '', '', '', 1, i, '' FROM n",
            (MAX_GIVEN_UP - 1,),
        )
    newest = [await notify(ledger, "chat") for _ in range(3)]
    for delivery in await claim(ledger):
        await ledger.outbox.give_up(delivery, at=NOW_MS, error="no")
    kept = stored(ledger_path, "SELECT event_id FROM given_up ORDER BY seq")
    assert len(kept) == MAX_GIVEN_UP
    assert kept[0] == "evt_3"
    assert kept[-4:] == [f"evt_{MAX_GIVEN_UP - 1}", *(event.event_id for event in newest)]


async def test_everything_of_an_endpoint_is_given_up_claimed_or_not(ledger: SqliteLedger, ledger_path: Path) -> None:
    events = []
    async with trio.open_nursery() as nursery:
        for number in range(230):
            event = make_event(timestamp=iso(NOW + number / 1000))
            events.append(event.event_id)
            nursery.start_soon(ledger.append, event, make_rows(event, "gone", "chat"))
    claimed = await claim(ledger, "gone", now=NOW_MS + 1000, limit=30)
    assert await ledger.outbox.give_up_all("gone", at=NOW_MS, error="no such endpoint") == 230
    assert await ledger.outbox.waiting() == {"chat": 230}
    rows = stored(ledger_path, "SELECT endpoint, error, attempts FROM given_up ORDER BY seq")
    assert rows == [("gone", "no such endpoint", 0)] * 200 + [("gone", "no such endpoint", 1)] * 30
    # In the order in which they were due, claimed ones at the end of their claims.
    moved = stored(ledger_path, "SELECT event_id FROM given_up ORDER BY seq")
    assert (moved[:200], set(moved[200:])) == (events[30:], set(events[:30]))
    await ledger.outbox.delivered(claimed[0])
    await ledger.outbox.put_off(claimed[1], NOW_MS)
    await ledger.outbox.give_up(claimed[2], at=NOW_MS, error="again")
    assert await ledger.outbox.give_up_all("gone", at=NOW_MS, error="no such endpoint") == 0
    assert len(stored(ledger_path, GIVEN_UP)) == 230


async def test_each_waiter_gets_its_own_answer(ledger: SqliteLedger, ledger_path: Path) -> None:
    events = {name: [(await notify(ledger, name)).event_id for _ in range(3)] for name in ("a", "b", "c", "d", "e")}
    claimed = {name: await claim(ledger, name, limit=1) for name in "ab"}
    answers: dict[str, Any] = {}

    async def ask(name: str, coroutine: Any) -> None:
        answers[name] = await coroutine

    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        async with trio.open_nursery() as nursery:
            for name, coroutine in (
                ("first", claim(ledger, "c", limit=2)), ("event", record_call(ledger)),
                ("all", ledger.outbox.give_up_all("d", at=NOW_MS, error="no")),
                ("delivered", ledger.outbox.delivered(claimed["a"][0])), ("second", claim(ledger, "c")),
                ("put off", ledger.outbox.put_off(claimed["b"][0], NOW_MS)), ("third", claim(ledger, "c")),
                ("back", claim(ledger, "b")), ("healthy", ledger.health()), ("other", claim(ledger, "e")),
                ("given up", ledger.outbox.give_up(claimed["a"][0], at=NOW_MS, error="as well")),
            ):  # fmt: skip
                nursery.start_soon(ask, name, coroutine)
            await wait_all_tasks_blocked()
            stranger.execute("ROLLBACK")
    told = {
        name: [delivery.event_id for delivery in answer] for name, answer in answers.items() if isinstance(answer, list)
    }
    # Which of those that are about the same came first, nobody can say.
    assert len(told["first"]) <= 2
    assert sorted(told["first"] + told["second"] + told["third"]) == sorted(events["c"])
    assert told["back"] in (events["b"], events["b"][1:])
    assert told["other"] == events["e"]
    assert (answers["all"], answers["delivered"], answers["healthy"]) == (3, None, True)
    assert await ledger.outbox.waiting() == {"a": 2, "b": 3, "c": 3, "e": 3}
    assert (await ledger.verify()).intact
