"""Two gateways on one ledger: one chain, one tree, and each answers again what it has answered itself."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import run_state_machine_as_test

from ipc.evidence.records import EventQuery
from ipc.operations.calls import Closed, HeldByCap
from ipc.operations.evidence import QueryEvents, ReadCheckpoint
from ipc.operations.holds import GetHold
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ListSessions, ReadEpoch
from ipc.operations.status import ReadLedger
from ipc.operations.witnesses import Cosign, NextCheckpoint
from ipc.settings import LedgerSettings, StoreSettings
from notary.backends.postgres.database import PostgresDatabase
from notary.backends.postgres.place import PostgresTarget
from notary.opening import open_state
from notary.upkeep.rounds import Upkeep
from tests.notary.backends.postgres.test_faults import read_only
from tests.notary.backends.redis.test_faults import told
from tests.notary.conftest import StartNotary
from tests.notary.operations.test_standing import OPERATORS, add, calls, opening
from tests.notary.running import Running, walk_of
from tests.notary.samples import (
    NOW,
    call_event,
    make_issue,
    make_note,
    make_open,
    make_result,
    make_revocation,
    make_revoke,
    record_call,
)
from tests.support.cosigners import CITY, witnessed_by
from tests.support.front_core import Core, front_core
from tests.support.gateway import wait_for
from tests.support.keyed_model import ACTIONS, KeyedHistories
from tests.support.postgres_server import PostgresServer
from tests.support.properties import FEW
from tests.support.town import town

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]


def test_two_gateways_write_one_chain_and_one_tree(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    numbers = [(running, running.front.send(make_open())[0]) for _ in range(20) for running in (one, other)]
    assert all(isinstance(running.front.answer(number), Closed) for running, number in numbers)
    one.front.ask(make_note())
    other.front.ask(make_note())
    assert one.front.ask(QueryEvents(EventQuery())) == other.front.ask(QueryEvents(EventQuery()))
    report = walk_of(one)
    assert (report.intact, report.total_events, report.size) == (True, 42, 82), report.reason
    assert other.front.ask(ReadCheckpoint()).size == one.front.ask(ReadCheckpoint()).size == 82


def test_a_call_that_one_runs_is_not_taken_from_it_by_the_other(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    asked = make_open()
    number = one.front.begin(asked)
    other.front.ask(make_note())
    other.restart()
    assert [view.intent_id for view in other.front.ask(ListUnresolved(9))] == [asked.intent_id]
    assert isinstance(one.front.finish(asked, number, make_result()), Closed)
    assert other.front.ask(ListUnresolved(9)) == []
    assert walk_of(other).intact


def test_among_simultaneous_calls_only_one_with_the_other_gateways_intent_is_refused(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    known, _ = record_call(other.front)
    for asked, problems in (
        ([make_open(), make_open()], [None, None]),
        ([make_open(), make_open(intent_id=known.intent_id), make_open()], [None, "refused", None]),
    ):
        assert [one.front.heard(number).problem for number in one.front.send(*asked)] == problems
    assert walk_of(one).intact


def test_each_answers_again_what_it_has_answered_whatever_the_other_does_meanwhile(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    front = one.attach("asks-again")
    asked = make_note()
    (number,) = front.send(asked)
    told = front.heard(number)
    for _ in range(3):
        other.front.ask(make_note())
    again = one.followed("asks-again", {number: asked})
    assert again.heard(number) == told
    assert len(one.front.ask(QueryEvents(EventQuery())).events) == 4


def test_a_gateway_starts_beside_one_whose_checkpoints_are_newer(start: StartNotary) -> None:
    one = start("one")
    one.front.ask(make_note())
    one.front.ask(ReadCheckpoint())
    other = start("other")
    other.front.ask(make_note())
    assert other.front.ask(ReadCheckpoint()).size == 2
    assert one.restart().ask(ReadCheckpoint()).size == 2


def test_a_checkpoint_of_one_keeps_its_cosignature_when_the_other_signs_the_same_tree(
    start: StartNotary, postgres_server: PostgresServer, database: str
) -> None:
    one, other = (start(name, evidence=witnessed_by(CITY)) for name in ("one", "other"))
    one.front.ask(make_note())
    shown = one.front.ask(ReadCheckpoint())
    assert one.front.ask(NextCheckpoint(CITY.name, None)).size == shown.size
    line = CITY.lines(shown.checkpoint, NOW)
    assert one.front.ask(Cosign(CITY.name, shown.size, line)) is None
    assert other.front.ask(ReadCheckpoint()).size == shown.size
    ((note,),) = postgres_server.ask("SELECT note FROM checkpoints", database=database)
    assert line in note


def test_operations_that_arrive_together_are_one_transaction(
    start: StartNotary, postgres_server: PostgresServer, database: str
) -> None:
    one = start("one")
    before = postgres_server.ask("SELECT number FROM turn", database=database)[0][0]
    for number in one.front.send(*[make_note() for _ in range(100)]):
        assert one.front.heard(number).problem is None
    after = postgres_server.ask("SELECT number FROM turn", database=database)[0][0]
    assert 1 <= after - before <= 20


def test_reads_take_no_turn_from_writers(start: StartNotary, postgres_server: PostgresServer, database: str) -> None:
    one = start("one")
    one.front.ask(make_note())
    one.front.ask(ReadCheckpoint())
    turns = postgres_server.ask("SELECT number FROM turn", database=database)
    for _ in range(5):
        one.front.ask(ReadEpoch())
        assert one.front.ask(GetHold("apr_none")) is None
    assert postgres_server.ask("SELECT number FROM turn", database=database) == turns


def test_the_rounds_of_an_idle_gateway_take_no_turn(
    start: StartNotary, postgres_server: PostgresServer, database: str
) -> None:
    one = start("one")
    one.front.ask(make_note())
    one.stop()
    state, _ = open_state(one.settings, one.clock)
    with closing(state.database):
        now = [100.0]
        upkeep = Upkeep(state, lambda: now[0])
        turns = postgres_server.ask("SELECT number FROM turn", database=database)
        for _ in range(3):
            now[0] += 1.0
            upkeep.due()
        assert postgres_server.ask("SELECT number FROM turn", database=database) == turns
    assert state.stores is not None
    state.stores.client.close()


def test_a_session_of_one_is_listed_and_revoked_at_the_other(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    session_id = one.front.ask(make_issue(max_calls=3)).session_id
    (shown,) = other.front.ask(ListSessions(10)).sessions
    assert (shown.session_id, shown.calls_remaining) == (session_id, 3)
    revoked = make_revocation(session_id)
    assert other.front.ask(revoked) is not None
    assert one.front.ask(make_open(event=call_event(session_id=session_id))).code == "invalid_lease"
    assert one.front.ask(ListSessions(10)).sessions == []
    again = one.front.ask(revoked)
    assert again is not None
    assert again.was_revoked


def test_a_gateways_memory_is_stale_until_it_follows_the_others_writes(
    start: StartNotary, postgres_server: PostgresServer, database: str
) -> None:
    start()
    one, other = (
        PostgresDatabase(PostgresTarget(postgres_server.settings(database)), {}, lambda _: None, name) for name in "ab"
    )
    with closing(one), closing(other):
        for opened in (one, other):
            opened.open(lambda _: None)
            with opened.unit():
                pass
            opened.follow()
        with other.unit():
            assert other.is_unchanged
        for _ in range(2):  # the first of them may be one that writes a checkpoint, and looks at nothing else
            with one.unit():
                assert not one.is_unchanged
        one.follow()
        for writes in (True, False):
            with one.unit(writes=writes):
                assert one.is_unchanged
            one.follow()
        with other.unit():
            pass
        with one.unit(writes=False):
            assert not one.is_unchanged, "whoever looks only sees it, too"


def test_a_unit_that_writes_no_event_does_not_hide_what_the_other_wrote_before_it(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    for _ in range(5):
        one.front.ask(make_note())
        other.front.ask(make_note())
        one.front.ask(ReadCheckpoint())  # signed, and written
        one.front.ask(make_note())
    assert walk_of(one).intact


def test_what_one_adds_both_count_and_either_ends(start: StartNotary) -> None:
    one, other = start("one", operators=OPERATORS), start("other", operators=OPERATORS)
    standing_id = add(one, max_calls=3)
    asked: list[tuple[Running, Any]] = [(host, host.front.send(opening(standing_id))[0]) for host in (one, other) * 3]
    ends = [type(host.front.answer(number)) for host, number in asked]
    assert (ends.count(Closed), ends.count(HeldByCap)) == (3, 3)
    assert calls(one) == calls(other) == [3]
    other.front.ask(make_revoke())
    assert calls(other) == []


@asynccontextmanager
async def two_fronts(folder: Path, store: StoreSettings, ledger: LedgerSettings) -> AsyncIterator[Sequence[Core]]:
    async with (
        front_core(folder, *ACTIONS, store=store, ledger=ledger) as one,
        front_core(folder, *ACTIONS, front_id="front-2-b", store=store, ledger=ledger) as other,
    ):
        yield one, other


def test_any_history_of_repeated_calls_on_postgresql_is_the_tables(
    tmp_path: Path, store: StoreSettings, postgres_server: PostgresServer, database: str
) -> None:
    with town(partial(two_fronts, tmp_path, store, postgres_server.settings(database))) as running_town:

        class OnPostgres(KeyedHistories):
            town = running_town

        run_state_machine_as_test(OnPostgres, settings=FEW)


def test_a_look_that_finds_room_for_its_rows_has_found_the_ledger_again(
    notary: Running, postgres_server: PostgresServer, database: str
) -> None:
    with read_only(postgres_server, database):
        wait_for(lambda: told(notary, make_note()) == "ledger", "the fault")
    wait_for(lambda: told(notary, ReadLedger()) == "", "the ledger")
    assert not notary.thread.state.is_failing, "it is not written to any more only to look"


def test_a_unit_that_takes_no_room_does_not_count_as_recovery(notary: Running) -> None:
    state = notary.thread.state
    state.is_failing = True
    assert notary.front.ask(ReadEpoch()) == 0
    assert state.is_failing, "a full disk would have let it pass"
    assert notary.front.ask(make_note()) is None
    assert not state.is_failing
    state.is_failing = True
    notary.front.begin(make_open())
    assert not state.is_failing, "the intent of a call takes room, too"
