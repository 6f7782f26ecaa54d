"""A notary that ends between two steps of a unit in Redis and ledger.

The difference between both is undone before the next request is served: docs/decisions/backends.md, "The order of Redis
and ledger".
"""

from collections.abc import Callable
from typing import Any

import pytest

from ipc.operations.calls import ProofRecord, UseProof
from ipc.operations.leases import Issue, ReadBudget, ReadEpoch, SignedLease
from notary.backends.redis.changes import Changes
from notary.backends.redis.scripts import APPLY, Script
from notary.backends.sqlite import SqliteDatabase
from notary.store.contract import StoreGone
from tests.notary.backends import order
from tests.notary.backends.order import CALLS, GONE, Killed, budgeted, end_of, ended, left, stores_of
from tests.notary.running import NotaryProcess, Running
from tests.notary.samples import NOW, make_issue
from tests.support.asking import Told
from tests.support.redis_server import RedisServer
from tests.support.strace import injected

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("patient_backends"),
]


def test_a_lease_without_its_ledger_row_does_not_count_as_a_session(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Issue = make_issue(max_calls=CALLS, max_sessions=1)
    order.applied(notary, monkeypatch)
    end_of(notary, asked)
    ended(notary)
    assert isinstance(notary.front.ask(asked), SignedLease)


def test_a_commit_that_fails_has_the_store_undone_at_once(notary: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    stores, database = stores_of(notary), notary.thread.state.database
    assert isinstance(database, SqliteDatabase)
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
    notary.look_no_more()  # it does not find the loss by itself, before it is asked anything
    stores = stores_of(notary)
    renew = stores.renew

    def ending(above: int) -> tuple[int, int]:
        renew(above)
        raise Killed

    monkeypatch.setattr(stores, "renew", ending)
    redis_server.ask("DEL", f"{{{prefix}}}:marker")
    end_of(notary, UseProof(ProofRecord("p", NOW)))
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
    notary.workers.start("front-x", obeys=True)  # a notary that ends by itself at this moment would tie none
    log = notary.path.with_name(f"{notary.path.name}-wal")
    with injected(process.process.pid, "pwrite64", "signal=KILL:when=1", notary.folder, [log]):
        with pytest.raises(GONE):
            front.ask(budgeted(session_id))
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
    notary.front.ask(UseProof(ProofRecord("before", NOW)))
    stores = stores_of(notary)
    redis_server.ask("HSET", stores.keys.unit(stores.notary), "fence", "another")
    assert notary.front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
    assert not notary.front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
    assert not notary.front.ask(UseProof(ProofRecord("before", NOW))).is_fresh
    assert notary.front.ask(ReadEpoch()) == 0
