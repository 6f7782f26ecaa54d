"""A notary that ends between two steps of a unit in Redis and ledger (docs/decisions.md, "The order of Redis and
ledger"). Before it serves, the next notary undoes every change that only one of the two stores has."""

from collections.abc import Callable
from math import inf
from typing import Any

import msgspec
import pytest

from ipc.blocking import ChannelClosed
from ipc.framing import FrameError
from ipc.messages import Closed, Enter, GetHold, Hold, Issue, Issued, Open, Operation, Proof, ReadBudget, ReadEpoch
from notary.backends.redis.changes import Changes
from notary.backends.redis.scripts import APPLY, Script
from notary.backends.redis.stores import Stores
from notary.backends.sqlite import Database
from notary.store.contract import StoreGone
from tests.notary.running import NotaryProcess, Running
from tests.notary.samples import call_event, make_claim, make_hold, make_issue, make_open
from tests.support.asking import Told
from tests.support.redis_server import RedisServer
from tests.support.strace import injected

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("patient_backends"),
]
GONE = (ChannelClosed, FrameError, OSError)
CALLS = 5


class Killed(BaseException):
    """The notary ends here."""


def stores_of(notary: Running) -> Stores:
    assert notary.thread is not None
    stores = notary.thread.state.stores
    assert stores is not None
    return stores


def budgeted(session_id: str, **given: Any) -> Open:
    return make_open(event=call_event(session_id=session_id), has_budget=True, proof=None, calls_per_hour=9, **given)


def left(notary: Running, session_id: str) -> int:
    return int(notary.front.ask(ReadBudget(session_id)).remaining)


def kill_at(notary: Running, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the notary end at the next unit that changes its store."""
    stores = stores_of(notary)
    apply, run, confirm = stores.apply, stores.client.run, stores.confirm

    def applying(changes: Changes, number: int) -> None:
        if not changes.steps and not changes.proofs:
            return apply(changes, number)
        if step == "before":
            raise Killed
        if step == "sent":

            def unheard(*asked: Any) -> Any:
                run(*asked)
                raise Killed

            monkeypatch.setattr(stores.client, "run", unheard)
        apply(changes, number)
        if step == "applied":
            raise Killed
        if step == "committed":
            monkeypatch.setattr(stores, "confirm", lambda: _end())
        return None

    def _end() -> None:
        confirm()
        raise Killed

    monkeypatch.setattr(stores, "apply", applying)


def end_of(notary: Running, asked: Operation) -> int:
    """Ask what the notary does not live to answer; the number."""
    (number,) = notary.front.send(asked)
    with pytest.raises(GONE):
        notary.front.heard(number)
    return number


def ended(notary: Running) -> None:
    """The notary that ended is followed by another one, of which a front of the same name asks again."""
    bury(notary)
    notary.start()


def bury(notary: Running) -> None:
    """Let go of a notary that ended."""
    assert notary.thread is not None
    notary.thread._thread.join(30)
    notary.thread._control.close()
    notary.thread = None


STEPS = pytest.mark.parametrize("step", ["before", "sent", "applied"])


@STEPS
def test_a_debit_that_the_ledger_does_not_have_is_undone_at_the_next_start(
    notary: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    kill_at(notary, step, monkeypatch)
    end_of(notary, budgeted(session_id))
    ended(notary)
    assert left(notary, session_id) == CALLS
    assert notary.stored("SELECT 1 FROM intents") == []
    assert isinstance(notary.front.ask(budgeted(session_id)), Closed)
    assert left(notary, session_id) == CALLS - 1


@STEPS
def test_a_hold_that_the_ledger_does_not_have_is_not_there(
    notary: Running, step: str, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer, prefix: str
) -> None:
    asked = make_hold(calls_per_hour=3)
    kill_at(notary, step, monkeypatch)
    end_of(notary, asked)
    ended(notary)
    assert notary.front.ask(GetHold(asked.approval.approval_id)) is None
    kept = [name for name in redis_server.names(prefix) if "hold" in name or "counted" in name]
    assert kept == []
    assert not notary.front.ask(changed_proof(asked)).is_repeated


def changed_proof(asked: Hold) -> Hold:
    """With a proof of its own: that of a unit which was undone stays used."""
    return msgspec.structs.replace(asked, proof=Proof("another-" + asked.approval.approval_id))


@STEPS
def test_a_claim_that_the_ledger_does_not_have_is_free_again_with_its_request(
    notary: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = make_hold()
    notary.front.ask(asked)
    kill_at(notary, step, monkeypatch)
    end_of(notary, make_claim(asked.approval))
    ended(notary)
    hold = notary.front.ask(GetHold(asked.approval.approval_id))
    assert (hold.state, hold.holder, hold.body) == ("pending", None, asked.approval.body)
    claimed = notary.front.ask(make_claim(asked.approval, notary.front.front_id))
    assert (claimed.state, claimed.holder) == ("claimed", notary.front.front_id)


@STEPS
def test_a_lease_that_the_ledger_does_not_have_counts_nowhere(
    notary: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Issue = make_issue(max_calls=CALLS, max_sessions=1)
    kill_at(notary, step, monkeypatch)
    end_of(notary, asked)
    ended(notary)
    assert isinstance(notary.front.ask(asked), Issued)


@pytest.mark.parametrize("step", ["sent", "applied"])
def test_the_proof_of_a_unit_that_was_undone_stays_used(
    notary: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(notary, step, monkeypatch)
    end_of(notary, Enter(Proof("p")))
    ended(notary)
    assert not notary.front.ask(Enter(Proof("p"))).is_fresh


def test_what_the_ledger_has_stays_done_and_is_answered_again(notary: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    asked = make_hold(has_budget=True)
    asked = msgspec.structs.replace(
        asked, approval=msgspec.structs.replace(asked.approval, session_id=session_id),
        event=msgspec.structs.replace(asked.event, session_id=session_id),
    )  # fmt: skip
    kill_at(notary, "committed", monkeypatch)
    number = end_of(notary, asked)
    bury(notary)
    before = notary.front
    notary.start()
    again = notary.attach(before.front_id)
    again.resend({number: asked})
    assert again.answer(number).approval.approval_id == asked.approval.approval_id
    assert left(notary, session_id) == CALLS - 1
    assert len(notary.events()) == 2


def test_a_commit_that_fails_has_the_store_undone_at_once(notary: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    assert notary.thread is not None
    stores, database = stores_of(notary), notary.thread.state.database
    assert isinstance(database, Database)
    apply: Callable[[Changes, int], None] = stores.apply

    def failing(changes: Changes, number: int) -> None:
        apply(changes, number)
        if changes.steps:
            assert database._connection is not None
            database._connection.execute("ROLLBACK")  # so that COMMIT finds nothing

    monkeypatch.setattr(stores, "apply", failing)
    with pytest.raises(Told, match="unavailable"):
        notary.front.ask(budgeted(session_id))
    assert not stores.owes
    monkeypatch.setattr(stores, "apply", apply)
    assert left(notary, session_id) == CALLS


def test_a_loss_that_is_followed_in_redis_alone_is_followed_again(
    notary: Running, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer, prefix: str
) -> None:
    assert notary.thread is not None
    remote = notary.thread._service._remote
    assert remote is not None
    remote._poll_at = inf  # it does not find the loss by itself, before it is asked anything
    stores = stores_of(notary)
    renew = stores.renew

    def ending(above: int) -> tuple[int, int]:
        renew(above)
        raise Killed

    monkeypatch.setattr(stores, "renew", ending)
    redis_server.ask("DEL", f"{{{prefix}}}:marker")
    end_of(notary, Enter(Proof("p")))
    first = int(redis_server.ask("GET", f"{{{prefix}}}:epoch"))
    ended(notary)
    assert notary.front.ask(ReadEpoch()) > first
    assert notary.last_event()["event_type"] == "AdminRevokeAll"


def test_a_ledger_that_is_older_than_its_store_ends_every_lease(
    notary: Running, redis_server: RedisServer, prefix: str
) -> None:
    notary.front.ask(make_issue(max_calls=CALLS))
    key = f"{{{prefix}}}:unit:{stores_of(notary).notary}"
    notary.stop()
    redis_server.ask("HSET", key, "number", "1000", "undo", "[]")
    notary.start()
    assert notary.front.ask(ReadEpoch()) > 0


def test_a_process_killed_as_it_commits_is_followed_by_one_that_undoes_the_store(notary: Running) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    notary.stop()
    process = NotaryProcess(notary.settings, notary.workers)
    process.ready()
    front = process.attach("front-x")
    assert front.ask(ReadBudget(session_id)).remaining == CALLS
    log = notary.path.with_name(f"{notary.path.name}-wal")
    with injected(process.process.pid, "pwrite64", "signal=KILL:when=1", notary.folder, [log]):
        (number,) = front.send(budgeted(session_id))
        with pytest.raises(GONE):
            front.heard(number)
        process.end()
    front.close()
    notary.start()
    assert notary.stored("SELECT 1 FROM intents") == []
    assert left(notary, session_id) == CALLS


def test_a_script_that_comes_after_its_recovery_does_nothing(
    notary: Running, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer
) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    client = stores_of(notary).client
    run = client.run
    late: list[tuple[Script, Any]] = []

    def losing(script: Script, keys: Any, *arguments: str) -> Any:
        if script is not APPLY or late or '"debit"' not in arguments[0]:
            return run(script, keys, *arguments)
        late.append((script, (len(keys), *keys, *arguments)))
        raise StoreGone("no answer in time")

    monkeypatch.setattr(client, "run", losing)
    with pytest.raises(Told, match="unavailable"):
        notary.front.ask(budgeted(session_id))
    assert left(notary, session_id) == CALLS, "it was recovered"
    ((script, asked),) = late
    assert redis_server.ask("EVAL", script.text, *asked) == ["fence"]
    assert left(notary, session_id) == CALLS


def test_a_unit_that_redis_takes_for_late_is_done_all_the_same(notary: Running, redis_server: RedisServer) -> None:
    notary.front.ask(Enter(Proof("before")))
    stores = stores_of(notary)
    redis_server.ask("HSET", stores.keys.unit(stores.notary), "fence", "another")
    assert notary.front.ask(Enter(Proof("p"))).is_fresh
    assert not notary.front.ask(Enter(Proof("p"))).is_fresh
    assert not notary.front.ask(Enter(Proof("before"))).is_fresh
    assert notary.front.ask(ReadEpoch()) == 0
