"""A Redis that can't be used: check and start say so in one sentence with its setting, and never with a password."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.settings import Settings, StoreSettings
from notary.backends.redis.fitness import problem_of_redis
from notary.opening import open_state
from notary.store.contract import StoreGone
from tests.notary.running import NotaryProcess, settings_in
from tests.notary.samples import changed
from tests.support.certificates import made_certificate
from tests.support.ports import closed_port, free_port
from tests.support.redis_server import RedisServer

PASSWORD = "hidden-words"
Guarded = tuple[RedisServer, StoreSettings]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A server that wants TLS and a password, and settings with which it will do."""
    folder = tmp_path_factory.mktemp("guarded")
    certificate, port = made_certificate(folder), free_port()
    server = RedisServer(
        folder / "redis", "--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file",
        str(folder / "key.pem"), "--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no",
        password=PASSWORD,
    )  # fmt: skip
    password = folder / "password"
    password.write_text(f"{PASSWORD}\n")
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
        assert PASSWORD not in sentence
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
    ({"redis_url": "rediss://localhost:{plain}"}, "Redis: "),
    ({"redis_url": "redis://no-such-name.invalid"}, "can't be used: "),
    ({"redis_url": "unix:///no/such/socket"}, "No such file"),
], ids=str)  # fmt: skip
def test_check_and_start_report_a_wrong_password_user_or_tls_setting(
    guarded: Guarded, changes: dict[str, str | None], why: str, tmp_path: Path
) -> None:
    server, store = guarded
    port = str(store.redis_url).rpartition(":")[2]
    for name, mode in (("wrong", 0o600), ("open", 0o644)):
        (tmp_path / name).write_text("other words")
        (tmp_path / name).chmod(mode)
    given = {
        name: value if value is None or name == "redis_url" else str(tmp_path / value)
        for name, value in changes.items()
    }  # fmt: skip
    if "redis_url" in given:
        given["redis_url"] = str(given["redis_url"]).format(port=port, plain=server.port)
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
    finally:
        redis_server.ask("REPLICAOF", "NO", "ONE")
    check_sentences(said, redis_server.settings, "which takes no writes")


def test_a_notary_behind_its_walls_speaks_tls(guarded: Guarded, tmp_path: Path) -> None:
    process = NotaryProcess(settings_in(tmp_path, store=guarded[1]))
    process.ready()
    assert process.stop() == 0
