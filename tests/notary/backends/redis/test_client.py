"""The connection to a Redis: what is known of it between two commands, and how it is made again."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import redis

from ipc.operations.calls import Closed, UseProof
from ipc.settings import Settings, StoreSettings
from notary.backends.redis.changes import milliseconds, number
from notary.backends.redis.client import Client, RedisTarget
from notary.backends.redis.fitness import problem_of_redis
from notary.backends.redis.scripts import SWEEP
from notary.store.contract import StoreGone
from tests.faults.between import REFUSES, Between
from tests.notary.backends.order import budgeted, left
from tests.notary.running import Running
from tests.notary.samples import fresh_proof, held_and_claimed, make_denial, make_hold, make_issue, make_revoke
from tests.support.gateway import wait_for
from tests.support.logs import capture_logs
from tests.support.names import SERVICE, resolve_to
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("patient_backends")
FOUND = "the Redis of the store answers again"


def connected(way: Between) -> Client:
    client = Client(RedisTarget(StoreSettings(redis_url=f"redis://127.0.0.1:{way.port}")).connect)
    client.open()
    return client


@pytest.fixture
def client(way: Between) -> Iterator[Client]:
    """Return a client that is connected through `way`."""
    client = connected(way)
    yield client
    client.close()


def named(server: RedisServer) -> int:
    """How many connections of notaries there are."""
    return str(server.ask("CLIENT", "LIST")).count("name=gateway-notary")


@pytest.mark.parametrize("others", [("::1", "127.0.0.9"), ("127.0.0.9", "::1")])
def test_every_address_of_a_name_is_tried_and_the_one_that_answers_is_kept_in_front(
    redis_server: RedisServer, others: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, others[0], "127.0.0.1", others[1])
    settings = StoreSettings(redis_url=f"redis://{SERVICE}:{redis_server.port}")
    place = RedisTarget(settings)
    for _ in range(2):
        with closing(place.connect()) as line:
            assert line.ask([("PING",)]) == ["PONG"]
        assert place._at[0].numeric == "127.0.0.1"
    assert "can't be used" not in (problem_of_redis(Settings("/state", "http://gateway.test", store=settings)) or "")


def test_a_name_none_of_whose_addresses_answers_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "127.0.0.9", "::1")
    place = RedisTarget(StoreSettings(redis_url=f"redis://{SERVICE}:{free_port()}"))
    with pytest.raises(redis.RedisError):
        place.connect()


def lose(client: Client) -> threading.Thread:
    """Have it find that its connection is gone; who seeks another one."""
    with pytest.raises(StoreGone, match="Redis: "):
        client.call("PING")
    assert client._seeker is not None
    return client._seeker


def is_known(client: Client) -> tuple[bool, bool]:
    return client.is_there, client.is_taken


def test_one_that_was_never_connected_is_not_there_and_there_is_nothing_to_take() -> None:
    client = Client(RedisTarget(StoreSettings(redis_url="redis://127.0.0.1")).connect)
    with capture_logs() as lines:
        client.take()
    assert (lines, is_known(client)) == ([], (False, False))
    with pytest.raises(StoreGone, match="is not connected"):
        client.call("PING")
    client.close()


def test_a_connection_that_was_lost_is_made_again_and_not_used_before_it_is_taken(client: Client, way: Between) -> None:
    assert is_known(client) == (True, True)
    with way.failing(REFUSES), capture_logs() as lines:
        lose(client)
        client.take()
        assert is_known(client) == (False, False)
        wait_for(lambda: "refused" in client._gone, "the first attempt")
        assert [line["event"] for line in lines] == ["the Redis of the store is gone"]
    wait_for(lambda: client.is_there, "the connection")
    assert not client.is_taken
    with pytest.raises(StoreGone, match="refused"):
        client.call("PING")
    with capture_logs() as lines:
        client.take()
        client.take()
    assert [line["event"] for line in lines] == [FOUND]
    assert (client.call("PING"), is_known(client)) == ("PONG", (True, True))


def test_its_end_leaves_neither_a_connection_nor_a_reconnecting_thread(tmp_path: Path) -> None:
    with closing(RedisServer(tmp_path)) as server, closing(Between(("127.0.0.1", server.port))) as way:
        client = connected(way)
        assert named(server) == 1
        with way.failing(REFUSES):
            seeker = lose(client)
        wait_for(lambda: client.is_there, "the connection")
        client.close()
        assert is_known(client) == (False, False)
        wait_for(lambda: not seeker.is_alive(), "the end of the thread")
        wait_for(lambda: named(server) == 0, "the end of both connections")


def test_its_end_ends_the_reconnecting_thread(client: Client, way: Between) -> None:
    with way.failing(REFUSES):
        seeker = lose(client)
        client.close()
        wait_for(lambda: not seeker.is_alive(), "its end")


def test_a_refusal_by_redis_is_reported_and_the_connection_stays(client: Client) -> None:
    with pytest.raises(StoreGone, match=r"Redis: ResponseError: .*wrong number of arguments"):
        client.many([("PING",), ("GET",), ("PING",)])
    assert client.many([("PING",), ("ECHO", "x")]) == ["PONG", "x"]
    assert is_known(client) == (True, True)


def test_a_script_is_sent_whole_once(client: Client, way: Between, redis_server: RedisServer) -> None:
    redis_server.ask("SCRIPT", "FLUSH")
    for _ in range(2):
        assert client.run(SWEEP, ["{x}:a", "{x}:b"], "0", "10", "10") == 0
    assert (way.count(b"EVALSHA"), way.count(b"$4\r\nEVAL\r\n")) == (2, 1)


def test_a_time_to_live_is_in_milliseconds_and_at_least_one() -> None:
    assert [milliseconds(seconds) for seconds in (180.0, 0.0015, 0.001, 0.0001, -5.0)] == ["180000", "2", "1", "1", "1"]


def test_a_missing_number_is_none_and_a_malformed_one_is_an_error() -> None:
    assert [number(text) for text in ("7", "0", "", None)] == [7, 0, 0, 0]
    with pytest.raises(StoreGone, match="makes no sense"):
        number("many")


SLOTS = 16384
PREFIX = "of.one:gateway_1"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[RedisServer]:
    """A cluster of one node, which has all slots."""
    server = RedisServer(tmp_path / "node", "--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    server.ask("CLUSTER", "ADDSLOTS", *range(SLOTS))
    wait_for(lambda: "cluster_state:ok" in str(server.ask("CLUSTER", "INFO")), "the cluster")
    yield server
    server.close()


def test_all_keys_of_a_gateway_lie_in_one_slot(node: RedisServer, tmp_path: Path) -> None:
    store = msgspec.structs.replace(node.settings, redis_prefix=PREFIX)
    notary = Running(tmp_path / "state", is_patient=True, store=store, dev_mode=True)
    try:
        front = notary.front
        session_id = front.ask(make_issue(max_calls=3, max_sessions=9)).session_id
        assert front.ask(UseProof(fresh_proof())).is_fresh
        assert isinstance(front.ask(budgeted(session_id)), Closed)
        assert left(notary, session_id) == 2
        assert front.ask(make_denial(held_and_claimed(front, front.front_id))) is not None
        front.ask(make_hold(calls_per_hour=9))
        front.ask(make_revoke())
        names = node.ask("KEYS", "*")
    finally:
        notary.close()
    kinds = {name.removeprefix(f"{{{PREFIX}}}:").split(":")[0] for name in names}
    assert kinds >= {"marker", "epoch", "unit", "proof", "budget", "calls", "sessions", "hold", "live", "ended"}
    assert {node.ask("CLUSTER", "KEYSLOT", name) for name in names} == {node.ask("CLUSTER", "KEYSLOT", PREFIX)}
