"""Actions that go out through the egress proxy, on a gateway of each kind and a real squid.

tests/conformance shows which calls the proxy lets through, and that calls fail without it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.gatectl import Gatectl, Ran
from tests.support.gateway import Bearer, wait_for
from tests.support.proxied import HOST, TOKEN, Stage, stage


@pytest.fixture(scope="module", params=["dev", "run"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Gateway, squid and upstreams."""
    with stage(request.param, tmp_path_factory.mktemp(request.param)) as staged:
        yield staged


ONLY_DEV = pytest.mark.parametrize("at", ["dev"], indirect=True, scope="module")
"""For what one kind of gateway is enough to show."""


@pytest.fixture
def agent(at: Stage) -> Bearer:
    """A fresh lease."""
    return at.gate.agent()


def wait_until(at: Stage, status: str) -> dict[str, Any]:
    """The body of /readyz once it says this; it is 200 with any state of the proxy."""

    def found() -> httpx.Response | None:
        answer = at.gate.http.get("/readyz")
        return answer if answer.json()["status"] == status else None

    answer = wait_for(found, f"readiness {status}")
    assert answer.status_code == 200
    return dict(answer.json())


def test_a_secret_goes_through_the_tunnel_in_tls_and_the_proxy_never_sees_it(at: Stage, agent: Bearer) -> None:
    answer = agent.execute("through_tls", {"path": "messages", "message": "hi"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["verification_outcome"] == "verified"
    assert f"authorization: Bearer {TOKEN}".encode() in at.safe.requests[-1]
    line = (200, "CONNECT", f"{HOST}:{at.safe.address.rpartition(':')[2]}")
    wait_for(lambda: line in at.proxy.lines(), f"{line} in squid's log")
    said = (at.proxy.folder / "access.log").read_text() + at.proxy.says() + answer.text + at.gate.log.read_text()
    assert TOKEN not in said


def test_an_upstream_that_squid_can_not_reach_is_told_from_a_proxy_that_is_gone(at: Stage, agent: Bearer) -> None:
    answer = agent.execute("closed", {"path": "x"})
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    (event,) = at.gate.events(trace_id=answer.headers["x-trace-id"])
    assert event["reason"] == "host_io: unavailable: the egress proxy could not reach the upstream"


# ------------------------------------------------------------------------------------------------ without it


@dataclass
class Outage:
    """The observations while squid was gone, and after it was back."""

    readiness: dict[str, Any]
    status: dict[str, Any]
    metrics: str
    gatectl: list[Ran]
    """`doctor` and `status` of an operator in dev mode."""
    again: httpx.Response
    """The call, once readiness said ready."""


@pytest.fixture(scope="module")
def lost(at: Stage, tmp_path_factory: pytest.TempPathFactory) -> Outage:
    """Live through one."""
    operator = at.gate.operator()
    with at.proxy.gone():
        degraded = wait_until(at, "degraded")
        status = operator.get("/v1/admin/status").json()
        metrics = operator.get("/metrics").text
        told = [] if at.mode == "run" else ask_gatectl(at, tmp_path_factory.mktemp("home"))
    wait_until(at, "ready")
    return Outage(degraded, status, metrics, told, at.gate.agent().execute("through", {"path": "again"}))


def ask_gatectl(at: Stage, folder: Path) -> list[Ran]:
    gatectl, ready = Gatectl(folder), folder / "ready.json"
    ready.touch(mode=0o600)
    ready.write_text(json.dumps(at.gate.ready))
    gatectl.done("context", "from-ready", str(ready))
    return [gatectl.here("doctor", "--json"), gatectl.here("status")]


def test_without_squid_readiness_is_degraded_and_nothing_else_is(lost: Outage) -> None:
    assert lost.readiness | {"actions_registered": 0} == {
        "status": "degraded", "redis": True, "opa": True, "ledger": True, "approval_store": True,
        "egress_proxy": False, "actions_registered": 0, "ledger_full": False, "crash_loops": [],
        "clock_error": None, "draining": False,
    }  # fmt: skip
    assert lost.status["status"] == "ok"
    assert lost.status["dependencies"] == {"redis": True, "opa": True, "egress_proxy": False}


def test_without_squid_metrics_say_so(lost: Outage) -> None:
    samples = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lost.metrics.splitlines()[:-1]
               if not line.startswith("#")}  # fmt: skip
    assert samples['gate_dependency_up{dependency="egress_proxy"}'] == 0
    assert samples['gate_readiness_degraded_total{reason="egress_proxy"}'] > 0


@ONLY_DEV
def test_without_squid_operators_are_told(lost: Outage) -> None:
    doctor, status = lost.gatectl
    rows = {row["check"]: row for row in doctor.json["checks"]}
    assert (rows["readiness"]["result"], rows["readiness"]["found"]) == ("warn", "degraded")
    assert (rows["egress proxy"]["result"], rows["egress proxy"]["found"]) == (
        "fail", "is down: calls that need it fail"
    )  # fmt: skip
    assert doctor.code == 1
    assert [line.split()[-1] for line in status.out.splitlines() if line.startswith("egress")] == ["down"]


def test_a_squid_that_is_back_is_used_again(lost: Outage) -> None:
    assert lost.again.status_code == 200
    assert lost.again.json()["verification"] == {"outcome": "verified", "is_fully_successful": True}
