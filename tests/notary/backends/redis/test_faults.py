"""Each way in which a Redis fails, before a notary that serves: what is refused, what goes on, and that it recovers by
itself. A silent Redis is in test_silence.py."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import pytest

from ipc.operations.calls import Open, ProofRecord, UseProof
from ipc.operations.holds import GetHold
from ipc.operations.leases import ReadBudget, SignedLease
from ipc.operations.operation import Operation
from ipc.operations.status import ReadStore
from ipc.settings import StoreSettings
from notary.backends.redis.client import Client, RedisTarget, RedisTimeouts
from notary.store.contract import StoreGone
from tests.notary.capped_calls import opening_of, uses_of
from tests.notary.running import Running
from tests.notary.samples import NOW, fresh_proof, make_hold, make_issue, make_note
from tests.support.asking import Told
from tests.support.gateway import wait_for
from tests.support.redis_server import RedisServer

Fault = Callable[[RedisServer], Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server of its own for tests that break it."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def hurt(server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A notary that lives through all of it."""
    running = Running(tmp_path_factory.mktemp("state"), is_patient=True, store=server.settings, dev_mode=True)
    yield running
    running.close()


def told(running: Running, asked: Operation[Any]) -> str:
    """Which part is not available; empty for an answer."""
    try:
        running.front.ask(asked)
    except Told as error:
        return (error.part or "?") if error.problem == "unavailable" else str(error)
    return ""


def fresh() -> UseProof:
    """With a proof of its own."""
    return UseProof(fresh_proof())


def spending() -> Open:
    """A call that counts for caps, and has no proof that would be looked up."""
    return opening_of("text_digest", "uid:1000", uses_of("uid:1000", "0.5", is_spared=True), proof=None)


@contextmanager
def down(server: RedisServer) -> Iterator[None]:
    # While its disk is busy it answers before it has written: that would be gone with it.
    wait_for(lambda: "aof_buffer_length:0" in server.info("persistence").splitlines(), "what it has answered")
    server.kill()
    yield
    server.start()


@contextmanager
def full(server: RedisServer) -> Iterator[None]:
    server.ask("CONFIG", "SET", "maxmemory", "1")
    yield
    server.ask("CONFIG", "SET", "maxmemory", "0")


@contextmanager
def replica(server: RedisServer) -> Iterator[None]:
    server.ask("REPLICAOF", "127.0.0.1", "1")
    yield
    server.ask("REPLICAOF", "NO", "ONE")


@contextmanager
def closed_to_its_user(server: RedisServer) -> Iterator[None]:
    server.ask("ACL", "SETUSER", "default", "-@scripting", "-mget")
    yield
    server.ask("ACL", "SETUSER", "default", "+@all")


@pytest.mark.parametrize("fault", [down, full, replica, closed_to_its_user])
def test_operations_on_a_lost_store_are_refused_by_part_and_recover(
    hurt: Running, server: RedisServer, fault: Fault
) -> None:
    check_fault(hurt, fault(server))


def check_fault(hurt: Running, fault: AbstractContextManager[None]) -> None:
    """Operations are refused within it by the part that they need, and are done after it."""
    session_id = hurt.front.ask(make_issue(max_calls=3)).session_id
    calls = len(hurt.stored("SELECT 1 FROM intents"))
    with fault:
        assert told(hurt, fresh()) == "store"
        assert told(hurt, spending()) == "budget"
        assert told(hurt, make_issue(max_calls=1)) == "budget"
        assert told(hurt, ReadStore()) == "store"
        assert told(hurt, make_hold()) == "approvals"
        # The ledger is not at fault.
        assert isinstance(hurt.front.ask(make_issue()), SignedLease)
        assert told(hurt, make_note()) == ""
    wait_for(lambda: told(hurt, ReadStore()) == "", "the store")
    assert told(hurt, fresh()) == ""
    assert hurt.front.ask(ReadBudget(session_id)).remaining == 3
    assert told(hurt, make_hold()) == ""
    assert len(hurt.stored("SELECT 1 FROM intents")) == calls, "no call was opened whose caps could not be counted"
    assert told(hurt, spending()) == ""


@pytest.mark.parametrize("lie", [
    ("HSET", "{}", "v", "x"), ("HSET", "{}", "1790000000:n", "1e3"), ("HSET", "{}", "oops", "1"), ("SET", "{}", "5"),
])  # fmt: skip
def test_a_cap_whose_amounts_can_not_be_read_opens_no_call(
    hurt: Running, server: RedisServer, lie: tuple[str, ...]
) -> None:
    assert told(hurt, spending()) == ""
    keys = server.ask("KEYS", "*:cap:*")
    assert keys
    for key in keys:
        server.ask("DEL", key)
        server.ask(*(part.replace("{}", key) for part in lie))
    assert told(hurt, spending()) == "budget"
    assert told(hurt, make_hold()) == "", "a call without caps"
    for key in keys:
        server.ask("DEL", key)
    assert told(hurt, spending()) == ""


def lose_the_last_units(server: RedisServer) -> None:
    """As a replica does that is made the master too early."""
    (record,) = server.ask("KEYS", "{gateway}:unit:*")
    server.ask("HSET", record, "number", "1")
    server.ask("CLIENT", "KILL", "TYPE", "normal")


@pytest.mark.parametrize("loses", [
    lambda server: server.ask("FLUSHALL"),
    lambda server: (server.kill(), server.wipe(), server.start()),
    lambda server: server.ask("DEL", "{gateway}:epoch"),
    lose_the_last_units,
], ids=["emptied", "restarted without its file", "without its epoch", "without its last units"])  # fmt: skip
def test_a_redis_that_lost_its_data_ends_every_earlier_lease(hurt: Running, server: RedisServer, loses: Fault) -> None:
    session_id = hurt.front.ask(make_issue(max_calls=3)).session_id
    wait_for(lambda: told(hurt, UseProof(ProofRecord(f"of {session_id}", NOW))) == "", "the store")
    before = hurt.front.ask(UseProof(fresh_proof())).epoch
    loses(server)
    wait_for(lambda: told(hurt, fresh()) == "", "the store")
    assert hurt.front.ask(fresh()).epoch > before
    event = hurt.last_event()
    assert (event["event_type"], event["principal"]) == ("AdminRevokeAll", "gateway")
    assert event["change"]["previous_epoch"] == before
    assert "lost its data" in event["reason"]
    assert hurt.front.in_force[-1].epoch == event["change"]["current_epoch"], "fronts are told"


def test_values_that_make_no_sense_are_no_answer(hurt: Running, server: RedisServer) -> None:
    session_id = hurt.front.ask(make_issue(max_calls=3)).session_id
    server.ask("HSET", f"{{gateway}}:budget:{session_id}", "left", "many")
    assert told(hurt, ReadBudget(session_id)) == "budget"
    server.ask("SET", "{gateway}:hold:apr_x", "garbage")
    assert told(hurt, GetHold("apr_x")) == "approvals"


@contextmanager
def answering(data: bytes) -> Iterator[int]:
    """A server that answers whatever it hears with this; its port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            while True:
                try:
                    taken, _ = server.accept()
                except OSError:
                    return
                with taken:
                    taken.recv(4096)
                    taken.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.mark.parametrize("data", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"$-5\r\n", b"*1\r\n", b"\xff\xff\r\n", b""])
def test_a_malformed_answer_counts_as_a_lost_redis(data: bytes) -> None:
    with answering(data) as port:
        client = Client(
            RedisTarget(StoreSettings(redis_url=f"redis://127.0.0.1:{port}"), RedisTimeouts(answer=0.1)).connect
        )
        with pytest.raises(StoreGone, match="Redis: "):
            client.open()
