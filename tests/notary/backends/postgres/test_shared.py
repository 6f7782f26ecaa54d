"""Two gateways on one ledger: one chain, one tree, and each answers again what it has answered itself."""

from contextlib import closing

import pytest

from ipc.events import AuditEvent
from ipc.evidence import EventQuery
from ipc.operations.calls import Closed
from ipc.operations.evidence import QueryEvents, ReadCheckpoint, ShowReceipt
from ipc.operations.holds import GetHold
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ListSessions, ReadEpoch, RevokeSession
from ipc.operations.witnesses import Cosign, NextCheckpoint
from notary.backends.postgres.database import PostgresDatabase
from notary.backends.postgres.place import PostgresTarget
from notary.checkpoints import RolledBack
from notary.opening import open_state
from notary.upkeep import Upkeep
from tests.notary.backends.postgres.conftest import StartNotary
from tests.notary.running import walk_of
from tests.notary.samples import NOW, call_event, changed, make_issue, make_note, make_open, make_result, record_call
from tests.support.cosigners import CITY, witnessed_by
from tests.support.postgres_server import PostgresServer

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


def test_a_receipt_of_one_is_shown_by_the_other(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    _, closed = record_call(one.front)
    assert other.front.ask(ShowReceipt(closed.receipt_id)).signature_status == "verified"


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


def test_among_simultaneous_calls_only_one_with_the_other_gateways_intent_is_refused(
    start: StartNotary,
) -> None:
    one, other = start("one"), start("other")
    known, _ = record_call(other.front)
    for asked, told in (
        ([make_open(), make_open()], [None, None]),
        ([make_open(), make_open(intent_id=known.intent_id), make_open()], [None, "refused", None]),
    ):
        assert [one.front.heard(number).problem for number in one.front.send(*asked)] == told
    assert walk_of(one).intact


def test_each_answers_again_what_it_has_answered_whatever_the_other_does_meanwhile(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    front = one.attach("asks-again")
    asked = make_note()
    (number,) = front.send(asked)
    told = front.heard(number)
    for _ in range(3):
        other.front.ask(make_note())
    one.restart()
    again = one.attach("asks-again")
    again.resend({number: asked})
    assert again.heard(number) == told
    assert len(one.front.ask(QueryEvents(EventQuery()))) == 4


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


def test_a_ledger_that_was_put_back_is_refused_by_a_start(
    start: StartNotary, postgres_server: PostgresServer, database: str
) -> None:
    one = start("one")
    copy = f"{database}_copy"
    one.front.ask(make_note())
    one.stop()
    postgres_server.ask(f"CREATE DATABASE {copy} TEMPLATE {database}")
    one.start()
    one.front.ask(make_note())
    one.front.ask(ReadCheckpoint())
    one.stop()
    with pytest.raises(RolledBack, match="an earlier copy was put back"):
        open_state(changed(one.settings, ledger=postgres_server.settings(copy)))


def test_checkpoints_that_were_taken_from_a_gateway_are_missed(start: StartNotary) -> None:
    one = start("one")
    one.front.ask(make_note())
    one.front.ask(ReadCheckpoint())
    one.stop()
    (one.folder / "checkpoints").unlink()
    with pytest.raises(RolledBack, match="is gone, which says how far the ledger was"):
        open_state(one.settings)


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
    event = AuditEvent(event_type="SessionRevoked", trace_id="trc_1", principal="operator:o", decision="allow")
    assert other.front.ask(RevokeSession(session_id, event)) is not None
    assert one.front.ask(make_open(event=call_event(session_id=session_id))).code == "invalid_lease"
    assert one.front.ask(ListSessions(10)).sessions == []
    again = one.front.ask(RevokeSession(session_id, event))
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
