"""The requirements on a Redis, and the ways to reach it: TLS, users, passwords in files, Unix sockets; each refusal in
a sentence."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from ipc.operations.holds import ListHolds
from ipc.process.private_files import write_private
from ipc.settings import Settings, StoreSettings
from notary.backends.redis.client import RedisTarget
from notary.backends.redis.fitness import RedisUnfit, _weak, _wrong, connected, problem_of_redis
from tests.faults.between import Between
from tests.notary.running import NotaryProcess, settings_in
from tests.notary.samples import make_hold, make_issue
from tests.support.logs import capture_logs
from tests.support.redis_server import RedisServer

PRODUCTION = Settings("/nowhere", "https://gate.example")
PASSWORD = "a-password-that-nobody-may-see"


def problem(store: StoreSettings, *, is_dev: bool = False) -> str | None:
    """Return the problem that the check reports for a Redis."""
    return problem_of_redis(msgspec.structs.replace(PRODUCTION, store=store, dev_mode=is_dev))


@contextmanager
def configured(server: RedisServer, name: str, value: str) -> Iterator[None]:
    before = server.ask("CONFIG", "GET", name)
    server.ask("CONFIG", "SET", name, value)
    yield
    server.ask("CONFIG", "SET", name, before[name])


def test_one_that_is_durable_will_do_and_none_is_no_problem(redis_server: RedisServer) -> None:
    assert problem(redis_server.settings) is None
    assert problem(StoreSettings()) is None


@pytest.mark.parametrize(("name", "value", "said"), [
    ("maxmemory-policy", "allkeys-lru", "maxmemory-policy is allkeys-lru, and proofs may be evicted: set noeviction."),
    ("appendonly", "no", "set appendonly yes."),
    ("appendfsync", "no", "set appendfsync always, or everysec."),
])  # fmt: skip
def test_a_redis_that_may_lose_data_is_refused_in_production_and_reported_in_dev_mode(
    redis_server: RedisServer, name: str, value: str, said: str
) -> None:
    with configured(redis_server, name, value):
        assert said in str(problem(redis_server.settings))
        assert problem(redis_server.settings, is_dev=True) is None
        place = RedisTarget(redis_server.settings)
        with pytest.raises(RedisUnfit) as refused:
            connected(PRODUCTION, place)
        with capture_logs() as lines:
            connected(msgspec.structs.replace(PRODUCTION, dev_mode=True), place).close()
    (told,) = [line["reason"] for line in lines if line["event"] == "the Redis of the store is weak"]
    assert told == str(refused.value)
    assert said in told


@pytest.mark.parametrize(("info", "wrong"), [
    ({"redis_version": "6.2.0", "role": "master"}, []),
    ({"redis_version": "7.0.15", "role": "master"}, []),
    ({"redis_version": "10.0", "role": "master"}, []),
    ({"redis_version": "6.1.9", "role": "master"}, ["Redis 6.1.9 is too old"]),
    ({"redis_version": "5.2", "role": "slave"}, ["Redis 5.2 is too old", "is a replica"]),
    ({}, ["Redis of no version is too old", "is a replica"]),
])  # fmt: skip
def test_one_that_will_not_do_at_all_is_known_by_what_it_says_of_itself(info: dict[str, str], wrong: list[str]) -> None:
    said = _wrong(info)
    assert len(said) == len(wrong)
    assert all(words in sentence for words, sentence in zip(wrong, said, strict=True))


def test_one_that_says_nothing_of_what_it_keeps_may_forget() -> None:
    assert _weak({"maxmemory_policy": "noeviction", "aof_enabled": "1"}) == []
    evicts, forgets = _weak({})
    assert "maxmemory-policy is None" in evicts
    assert "keeps no append-only file" in forgets


def test_one_that_flushes_with_every_write_will_do(redis_server: RedisServer) -> None:
    with configured(redis_server, "appendfsync", "always"):
        assert problem(redis_server.settings) is None


def test_one_that_does_not_let_its_user_read_how_it_flushes_may_forget(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    redis_server.ask("ACL", "SETUSER", "blind", "on", f">{PASSWORD}", "~*", "+@all", "-config|get")
    file = tmp_path / "password"
    write_private(file, PASSWORD.encode())
    store = StoreSettings(redis_url=f"unix://blind@{redis_server.socket}", redis_password_file=str(file))
    assert str(problem(store)).endswith("can't be read: allow its user +config|get.")
    assert problem(store, is_dev=True) is None


def test_a_replica_is_refused_everywhere(redis_server: RedisServer) -> None:
    redis_server.ask("REPLICAOF", "127.0.0.1", "1")
    try:
        assert "name its master" in str(problem(redis_server.settings, is_dev=True))
    finally:
        redis_server.ask("REPLICAOF", "NO", "ONE")


class Breaking(Between):
    """Every connection ends when the server is asked for what it is."""

    def _passes(self, data: bytes, client: socket.socket, *, is_asked: bool) -> bool:
        return super()._passes(data, client, is_asked=is_asked) and b"INFO" not in data


def test_one_that_breaks_off_is_asked_once(redis_server: RedisServer) -> None:
    with closing(Breaking(("127.0.0.1", redis_server.port))) as way:
        assert "can't be used" in str(problem(StoreSettings(redis_url=f"redis://127.0.0.1:{way.port}")))
        assert way.count(b"INFO") == 1


def test_a_user_with_the_rights_of_the_documentation_has_all_it_needs(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    documented = (Path(__file__).resolve().parents[4] / "docs" / "operations.md").read_text()
    rights = documented.partition("A user needs `")[2].partition("`")[0].split()
    assert "+@scripting" in rights
    redis_server.ask("ACL", "SETUSER", "gate", "on", f">{PASSWORD}", "~{gateway}:*", *rights)
    file = tmp_path / "password"
    write_private(file, PASSWORD.encode() + b"\n")
    store = StoreSettings(redis_url=f"unix://gate@{redis_server.socket}", redis_password_file=str(file))
    settings = settings_in(tmp_path, store=store)
    assert problem_of_redis(settings) is None
    process = NotaryProcess(settings)
    process.ready()
    front = process.attach("front-1")
    front.ask(make_issue(max_calls=3, max_sessions=3))
    front.ask(make_hold(calls_per_hour=3))
    assert front.ask(ListHolds(None, 5)).total == 1
    front.close()
    assert process.stop() == 0
    file.unlink()
    write_private(file, b"another")
    told = str(problem_of_redis(settings))
    assert "user or password is refused" in told
    assert PASSWORD not in told
