"""Going on with a clock that is behind the newest evidence, because an operator says why."""

import json
import time

import msgspec
import pytest

from ipc.operations.calls import ProofRecord, UseProof
from ipc.operations.holds import ListHolds
from ipc.operations.leases import ReadEpoch
from ipc.process.clock import ClockWrong, TimeSource, parse_iso
from ipc.process.exits import Exit
from notary.opening import open_state
from notary.programs.accept_clock import accept, main
from notary.programs.accepting import NothingToAccept
from notary.store import quotas
from tests.notary.operations.test_caps import held, total, used
from tests.notary.running import Running, query, walk
from tests.notary.samples import NOW, make_expiry, make_hold, make_issue, record_call
from tests.notary.test_checkpoints import grow
from tests.support.standard_input import standard_input

REASON = "the time server was wrong"
DAY = 86_400


def ahead(notary: Running) -> None:
    """A gateway that ran for a while with a clock that was a day ahead."""
    notary.clock.time = time.time() + DAY
    grow(notary)
    notary.front.ask(make_issue(max_calls=3))
    notary.front.ask(make_hold())
    notary.front.ask(UseProof(ProofRecord("used", NOW)))
    notary.stop()
    notary.clock.time = time.time()


def refuses_every_call(notary: Running) -> bool:
    """Whether a notary that starts now tells no time."""
    state, _ = open_state(notary.settings)
    state.database.close()
    until = _wrong_until(state.clock)
    assert until is None or abs(until - time.time() - DAY) < 3600
    return until is not None


def _wrong_until(clock: TimeSource) -> float | None:
    try:
        clock.now()
    except ClockWrong as error:
        return error.until
    return None


def test_it_leaves_an_event_ends_every_lease_and_restores_the_clock(notary: Running) -> None:
    ahead(notary)
    assert refuses_every_call(notary)
    assert accept(notary.settings, REASON, "uid:7").startswith("Accepted: the newest evidence is of ")
    assert not refuses_every_call(notary)
    front = notary.start()
    (event,) = [json.loads(one) for one in query(front, event_type="ClockAccepted")]
    change = event["change"]
    assert (event["reason"], change["by"]) == (REASON, "uid:7")
    assert 0 < parse_iso(change["from"]) - parse_iso(change["to"]) - DAY + 3600 < 7200
    assert front.ask(ReadEpoch()) == change["current_epoch"] == change["previous_epoch"] + 1
    assert walk(front).intact
    assert front.ask(ListHolds(("pending",), 10)).approvals == []
    notary.clock.time += DAY
    assert not front.ask(UseProof(ProofRecord("used", NOW))).is_fresh, (
        "a proof of the time ahead can't be used when that has come"
    )


def test_evidence_that_follows_is_the_newest_from_then_on(notary: Running) -> None:
    ahead(notary)
    accept(notary.settings, REASON, "")
    record_call(notary.start(), epoch=1)
    notary.stop()
    assert not refuses_every_call(notary)
    with pytest.raises(NothingToAccept):
        accept(notary.settings, REASON, "")


def test_calls_and_deliveries_of_the_time_ahead_count_and_are_due_now(notary: Running) -> None:
    later = int(time.time()) + DAY
    ahead(notary)
    state, _ = open_state(notary.settings)
    with state.database.unit() as connection:
        for _ in range(2):
            quotas.count_call(connection, "p", quotas.minute_of(later))
        connection.execute(
            "INSERT INTO outbox (event_id, kind, endpoint, due, payload) VALUES ('evt_1', 'k', 'e', ?, '{}')",
            (later * 1000,),
        )
    state.database.close()
    accept(notary.settings, REASON, "")
    state, _ = open_state(notary.settings)
    with state.database.unit() as connection:
        used, free_in = quotas.calls_of(connection, "p", time.time())
        (due,) = connection.execute("SELECT due FROM outbox").fetchone()
    state.database.close()
    assert used == 2
    assert free_in is not None
    assert free_in <= quotas.WINDOW_MINUTES * 60
    assert due <= time.time() * 1000


def test_a_hold_of_the_time_ahead_gives_back_what_its_caps_count(notary: Running) -> None:
    now, holding = time.time() + DAY, held()
    approval = msgspec.structs.replace(holding.approval, created_at=now, expires_at=now + 300)
    notary.clock.time = now
    grow(notary)
    notary.front.ask(msgspec.structs.replace(holding, approval=approval))
    notary.stop()
    notary.clock.time = time.time()
    accept(notary.settings, REASON, "")
    front = notary.start()
    assert total(notary) == "40"
    front.ask(make_expiry(approval))
    assert used(notary) == ()


def test_a_file_that_can_not_be_read_is_named(notary: Running, capsys: pytest.CaptureFixture[str]) -> None:
    notary.clock.time = time.time()
    grow(notary)
    notary.stop()
    file = notary.folder / "checkpoints"
    file.unlink()
    file.mkdir()  # as a container's volume leaves one in the place of a file
    with standard_input(msgspec.json.encode(notary.settings)):
        assert main(["--reason", REASON]) == Exit.UNAVAILABLE
    assert capsys.readouterr().err == f"{file}: Is a directory.\n"


def test_a_clock_that_is_right_is_nothing_to_accept(notary: Running, capsys: pytest.CaptureFixture[str]) -> None:
    notary.clock.time = time.time()
    grow(notary)
    notary.stop()
    with standard_input(msgspec.json.encode(notary.settings)):
        assert main(["--reason", REASON]) == Exit.CONFIG
    assert "the clock is not behind the newest evidence: there is nothing to accept" in capsys.readouterr().err
