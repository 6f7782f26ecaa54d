"""The requirements on a Redis and the ways to reach it; each refusal is a sentence, never with a password."""

import socket
import time
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
from notary.opening import open_state
from notary.store.contract import StoreGone
from tests.faults.between import Between
from tests.notary.running import NotaryProcess, settings_in
from tests.notary.samples import changed, make_hold, make_issue
from tests.support.certificates import made_certificate
from tests.support.logs import capture_logs
from tests.support.ports import closed_port, free_port
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("patient_backends")
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


@pytest.mark.parametrize(("ahead", "told"), [(-600, [-600]), (90, [90]), (0, [])])
def test_a_clock_that_is_not_that_of_the_server_is_told(
    redis_server: RedisServer, ahead: int, told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time
    monkeypatch.setattr("notary.backends.redis.fitness.time.time", lambda: now() + ahead)
    with capture_logs() as lines:
        connected(PRODUCTION, RedisTarget(redis_server.settings)).close()
    assert [line["seconds_ahead"] for line in lines if "clocks of this host" in line["event"]] == told


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


HIDDEN = "hidden-words"
Guarded = tuple[RedisServer, StoreSettings]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A server that wants TLS and a password, and settings with which it will do."""
    folder = tmp_path_factory.mktemp("guarded")
    certificate, port = made_certificate(folder), free_port()
    server = RedisServer(
        folder / "redis", "--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file",
        str(folder / "key.pem"), "--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no",
        password=HIDDEN,
    )  # fmt: skip
    password = folder / "password"
    password.write_text(f"{HIDDEN}\n")
    password.chmod(0o600)
    yield (
        server,
        StoreSettings(
            redis_url=f"rediss://localhost:{port}", redis_password_file=str(password), redis_ca_file=str(certificate)
        ),
    )
    server.close()


def refused(folder: Path, store: StoreSettings) -> list[str]:
    """The messages of `check` and of a start."""
    told = problem_of_redis(Settings("/state", "http://gateway.test", store=store))
    with pytest.raises(StoreGone) as start:
        open_state(settings_in(folder, store=store))
    return [str(told), str(start.value)]


def check_sentences(said: list[str], store: StoreSettings, why: str) -> None:
    for sentence in said:
        assert why in sentence
        assert "\n" not in sentence
        assert sentence.endswith(".")
        assert not sentence.endswith("..")
        assert HIDDEN not in sentence
    assert said[1].startswith(f"store.redis_url = {store.redis_url!r}: can't be used: ")


def test_one_that_is_guarded_will_do(guarded: Guarded) -> None:
    assert problem_of_redis(Settings("/state", "http://gateway.test", store=guarded[1])) is None


@pytest.mark.parametrize(("changes", "why"), [
    ({"redis_password_file": None}, "user or password is refused"),
    ({"redis_password_file": "wrong"}, "user or password is refused"),
    ({"redis_password_file": "none"}, "No such file"),
    ({"redis_password_file": "open"}, "mode 0644 lets others in"),
    ({"redis_url": "rediss://nobody@localhost:{port}"}, "user or password is refused"),
    ({"redis_ca_file": None}, "certificate verify failed"),
    ({"redis_ca_file": "none"}, "No such file"),
    ({"redis_url": "rediss://127.0.0.1:{port}"}, "certificate verify failed"),
    ({"redis_url": "redis://localhost:{port}"}, "Redis: "),
    ({"redis_url": "redis://no-such-name.invalid"}, "can't be used: "),
    ({"redis_url": "unix:///no/such/socket"}, "No such file"),
], ids=str)  # fmt: skip
def test_check_and_start_report_a_wrong_password_user_or_tls_setting(
    guarded: Guarded, changes: dict[str, str | None], why: str, tmp_path: Path
) -> None:
    _, store = guarded
    port = str(store.redis_url).rpartition(":")[2]
    for name, mode in (("wrong", 0o600), ("open", 0o644)):
        (tmp_path / name).write_text("other words")
        (tmp_path / name).chmod(mode)
    given = {
        name: value if value is None or name == "redis_url" else str(tmp_path / value)
        for name, value in changes.items()
    }  # fmt: skip
    if "redis_url" in given:
        given["redis_url"] = str(given["redis_url"]).format(port=port)
    store = changed(store, **given)
    check_sentences(refused(tmp_path / "state", store), store, why)


def test_one_that_is_down_is_said_by_check_and_start(tmp_path: Path) -> None:
    with closed_port() as port:
        for url, why in (
            (f"redis://127.0.0.1:{port}", "Connection refused"),
            (f"redis+sentinel://127.0.0.1:{port}/main", "no sentinel tells where main is"),
        ):
            store = StoreSettings(redis_url=url)
            check_sentences(refused(tmp_path / "state", store), store, why)


def test_a_replica_is_said_by_check_and_start(redis_server: RedisServer, tmp_path: Path) -> None:
    redis_server.ask("REPLICAOF", "127.0.0.1", "1")
    try:
        said = refused(tmp_path / "state", redis_server.settings)
        assert "name its master" in str(problem(redis_server.settings, is_dev=True))
    finally:
        redis_server.ask("REPLICAOF", "NO", "ONE")
    check_sentences(said, redis_server.settings, "which takes no writes")


def test_a_notary_behind_its_walls_speaks_tls(guarded: Guarded, tmp_path: Path) -> None:
    process = NotaryProcess(settings_in(tmp_path, store=guarded[1]))
    process.ready()
    assert process.stop() == 0
