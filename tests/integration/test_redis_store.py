"""A whole gateway with its store in a Redis, from outside: a restart; a Redis that goes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from ipc.process.exits import Exit
from tests.integration.test_metrics import scrape
from tests.integration.test_postgres_ledger import run
from tests.support.gateway import Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.ports import closed_port
from tests.support.redis_server import RedisServer
from tests.support.upstream import Upstream

PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}
TEXT = {"text": "a"}
Start = Callable[[], AbstractContextManager[Gateway]]


@pytest.fixture(scope="module")
def start(up: Upstream, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Starts the gateway of one folder, by TCP to its Redis."""
    folder: Path = tmp_path_factory.mktemp("state")
    store = f'\n[store]\nredis_url = "redis://localhost:{redis_server.port}"\n'
    return lambda: gateway(folder, config_for(up.address, patient(folder / "actions") + store))


@pytest.fixture(scope="module")
def gate(start: Start) -> Iterator[Gateway]:
    """The gateway that these tests share."""
    with start() as running:
        yield running


def held(agent: Bearer) -> str:
    answer = agent.execute("payment_transfer", PAYMENT)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["approval_id"])


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error", "")


def test_a_gateway_that_starts_again_goes_on_with_what_is_there(start: Start, gate: Gateway) -> None:
    agent = gate.agent(max_calls=2)
    path = "/v1/actions/text_digest/execute"
    headers = agent.headers("POST", path)
    assert gate.http.post(path, headers=headers, json=TEXT).status_code == 200
    assert code(gate.http.post(path, headers=headers, json=TEXT)) == (401, "replay_detected")
    approval_id = held(agent)
    backends = gate.operator().get("/v1/admin/status").json()["backends"]
    assert backends == {"store": "redis", "policy": "embedded", "ledger": "sqlite"}
    gate.stop()
    with start() as again:
        agent = Bearer(again.http, again.base, agent.token, agent.prover)
        assert code(agent.execute("text_digest", TEXT)) == (403, "budget_exhausted")
        operator = again.operator()
        assert operator.get(f"/v1/approvals/{approval_id}").json()["state"] == "pending"
        assert operator.post(f"/v1/approvals/{approval_id}/approve").status_code == 200


def test_calls_that_are_refused_while_redis_is_down_are_in_evidence_and_told_by_codes_of_the_execute_table(
    start: Start, gate: Gateway, redis_server: RedisServer
) -> None:
    gate.stop()  # if no test before this one has
    with start() as running:
        agent, counted = running.agent(), running.agent(max_calls=2)
        redis_server.kill()
        refused = [
            code(agent.execute("text_digest", TEXT)),
            code(agent.execute("text_digest", {"wrong": 1})),
            code(agent.execute("payment_transfer", PAYMENT)),
            code(agent.execute("forbidden_export", {"table": "customers"})),
            code(counted.execute("text_digest", TEXT)),
        ]
        redis_server.start()
        wait_for(lambda: agent.execute("text_digest", TEXT).status_code == 200, "Redis is used again")
        told = running.events(decision="error", event_type="ActionCall")
        counted_errors = scrape(running)
    assert counted_errors("gate_store_request_errors_total", operation="proof") >= 4
    for operation in ("intent", "event"):
        assert counted_errors("gate_audit_write_errors_total", operation=operation) == 0, (
            "the ledger took all it was given"
        )
    assert refused == [(503, "replay_cache_unavailable")] * 5
    codes = [one["error_code"] for one in reversed(told)]
    assert codes[:5] == [error for _, error in refused]


def test_sentinels_that_are_down_are_told_by_check_and_refuse_a_start(tmp_path: Path, up: Upstream) -> None:
    file = tmp_path / "gateway.toml"
    with closed_port() as port:
        store = f'\n[store]\nredis_url = "redis+sentinel://127.0.0.1:{port}/main"\n'
        file.write_text(config_for(up.address, patient(tmp_path / "actions") + store))
        at = ("--config", str(file), "--state-dir", str(tmp_path / "state"))
        told = run("check", "--dev", *at, "--connect")
        started = run("dev", *at, "--listen", "127.0.0.1:0")
    assert (told.returncode, started.returncode) == (Exit.UNAVAILABLE, Exit.UNAVAILABLE), told.stdout
    why = f"can't be used: Redis: ConnectionError: no sentinel tells where main is (127.0.0.1:{port}: "
    assert why in told.stdout
    assert why in started.stderr
