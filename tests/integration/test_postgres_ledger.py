"""A whole gateway with its ledger in a PostgreSQL and its store in a Redis, from outside."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ipc.process.exits import Exit
from tests.support.gateway import PROGRAM, Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer
from tests.support.upstream import Upstream

TEXT = {"text": "a"}


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL of this module's own."""
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> str:
    """The address of the ledger, by TCP."""
    return str(postgres_server.settings(postgres_server.new_database(), by_tcp=True).url)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of the gateway."""
    made: Path = tmp_path_factory.mktemp("state")
    return made


@pytest.fixture(scope="module")
def config(up: Upstream, redis_server: RedisServer, url: str, folder: Path) -> str:
    """Its configuration."""
    backends = f'\n[store]\nredis_url = "{redis_server.url}"\n\n[ledger]\nurl = "{url}"\n'
    return config_for(up.address, patient(folder / "actions") + backends)


@pytest.fixture(scope="module")
def gate(folder: Path, config: str) -> Iterator[Gateway]:
    """The gateway that these tests share."""
    with gateway(folder, config) as running:
        yield running


def test_calls_leave_evidence_that_is_found_and_verified_and_no_file_of_sqlite(gate: Gateway, folder: Path) -> None:
    agent, operator = gate.agent(max_calls=5), gate.operator()
    answer = agent.execute("text_digest", TEXT).json()
    assert operator.get("/v1/admin/status").json()["backends"]["ledger"] == "postgresql"
    (event,) = operator.get(f"/v1/audit/events?trace_id={answer['trace_id']}").json()["events"]
    assert event["receipt_id"] == answer["receipt_id"]
    assert operator.get(f"/v1/receipts/{answer['receipt_id']}").json()["signature_status"] == "verified"
    assert operator.get("/v1/audit/verify").json()["intact"] is True
    assert [path for path in folder.rglob("*") if "sqlite" in path.name] == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *((f"/v1/audit/events?{name}=a%00b", name) for name in ("trace_id", "action_id", "principal", "session_id")),
        ("/v1/audit/events?event_type=a%00b", "event_type"), ("/v1/audit/events?kept./a%00b=1", "kept"),
        *((f"/v1/audit/proof?{name}=a%00b", name) for name in ("event_id", "intent_id", "receipt_id")),
        ("/v1/admin/intents?after=a%00b", "after"), ("/v1/admin/webhooks?endpoint=a%00b", "endpoint"),
    ],
)  # fmt: skip
def test_a_filter_that_no_stored_text_can_match_is_the_operators_fault(gate: Gateway, path: str, name: str) -> None:
    answer = gate.operator().get(path)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert answer.json()["message"].startswith(f"{name}: must be ")


def test_the_notary_is_connected_to_its_backends_and_to_nothing_else(
    gate: Gateway, redis_server: RedisServer, postgres_server: PostgresServer
) -> None:
    notary = psutil.Process(gate.child("notary").pid)
    wait_for(lambda: len(notary.net_connections("inet")) > 1, "its connections")
    assert {one.raddr.port for one in notary.net_connections("inet")} == {redis_server.port, postgres_server.port}


def test_while_the_ledger_is_down_nothing_runs_and_afterwards_everything_does(
    gate: Gateway, postgres_server: PostgresServer
) -> None:
    agent = gate.agent(max_calls=5)
    assert agent.execute("text_digest", TEXT).status_code == 200
    postgres_server.kill()
    assert agent.execute("text_digest", TEXT).status_code >= 500
    wait_for(lambda: gate.http.get("/readyz").json()["ledger"] is False, "readiness to fail")
    assert gate.http.get("/readyz").status_code == 503
    postgres_server.start()
    wait_for(lambda: gate.http.get("/readyz").status_code == 200, "readiness")
    assert agent.execute("text_digest", TEXT).status_code == 200
    assert gate.operator().get("/v1/audit/verify").json()["intact"] is True


def test_a_ledger_is_verified_by_its_address_without_the_gateway(gate: Gateway, folder: Path, url: str) -> None:
    keys = folder / "keys.json"
    keys.write_text(gate.operator().get("/v1/receipt-keys").text)
    done = run("ledger", "verify", url, "--keys", str(keys))
    assert (done.returncode, "is intact" in done.stdout) == (Exit.OK, True), done.stderr
    other = run("ledger", "verify", url + "x", "--keys", str(keys))
    assert (other.returncode, "does not exist" in other.stderr) == (Exit.UNAVAILABLE, True), other.stderr


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command of the gateway's."""
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_a_backend_that_is_down_is_told_by_check_and_refuses_a_start(
    tmp_path: Path, up: Upstream, redis_server: RedisServer
) -> None:
    backends = f'\n[store]\nredis_url = "{redis_server.url}"\n\n[ledger]\nurl = "postgresql://g@127.0.0.1:9/ledger"\n'
    file = tmp_path / "gateway.toml"
    file.write_text(config_for(up.address, patient(tmp_path / "actions") + backends))
    told = run("check", "--dev", "--config", str(file), "--state-dir", str(tmp_path / "state"), "--connect")
    assert told.returncode == Exit.UNAVAILABLE, told.stdout
    assert "ledger.url = 'postgresql://g@127.0.0.1:9/ledger': can't be used: PostgreSQL: " in told.stdout
    started = run("dev", "--config", str(file), "--state-dir", str(tmp_path / "state"), "--listen", "127.0.0.1:0")
    assert started.returncode == Exit.UNAVAILABLE
    assert "can't be used: PostgreSQL: " in started.stderr
