"""Actions that go out through the egress proxy, on a gateway of each kind and a real squid."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.gatectl import Gatectl, Ran
from tests.support.gateway import Bearer, wait_for
from tests.support.proxied import HOST, REFUSED, TOKEN, Stage, stage


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


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def failed(at: Stage, answer: httpx.Response, reason: str) -> None:
    """A call that ended with 502, and why: in the event and in the receipt, and not in the answer."""
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    (event,) = at.gate.events(trace_id=answer.headers["x-trace-id"])
    assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
    assert event["reason"] == f"host_io: {reason}"
    receipt = at.gate.operator().get(f"/v1/receipts/{event['receipt_id']}").json()
    assert receipt["normalized_result"] == {"kind": "provider_failure", "reason": event["reason"]}
    assert receipt["signature_status"] == "verified"


def asked(at: Stage, status: int, target: str, before: int = 0) -> None:
    """Squid was asked for a tunnel there, and answered so; as soon as its log says it."""
    line = (status, "CONNECT", target)
    wait_for(lambda: line in at.proxy.lines()[before:], f"{line} in squid's log")


def wait_until(at: Stage, status: str) -> dict[str, Any]:
    """The body of /readyz once it says this; it is 200 with any state of the proxy."""

    def found() -> httpx.Response | None:
        answer = at.gate.http.get("/readyz")
        return answer if answer.json()["status"] == status else None

    answer = wait_for(found, f"readiness {status}")
    assert answer.status_code == 200
    return dict(answer.json())


# ------------------------------------------------------------------------------------------------ through it


def test_an_allowed_upstream_is_reached_through_a_tunnel_and_verified(at: Stage, agent: Bearer) -> None:
    answer = agent.execute("through", {"path": "things?limit=2"})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["output"] == {"status": 200, "body": {"ok": True, "path": "/things?limit=2"}}
    assert body["verification"] == {"outcome": "verified", "is_fully_successful": True}
    receipt = agent.get(f"/v1/receipts/{body['receipt_id']}").json()
    assert receipt["signature_status"] == "verified"
    assert at.up.seen[-1].headers["host"] == f"{HOST}:{port_of(at.up.address)}"
    assert not {"via", "x-forwarded-for", "forwarded"} & set(at.up.seen[-1].headers)
    asked(at, 200, f"{HOST}:{port_of(at.up.address)}")


def test_an_answer_of_the_upstream_that_looks_like_the_proxys_is_the_upstreams(at: Stage, agent: Bearer) -> None:
    answer = agent.execute("through", {"path": "status/403"})
    assert (answer.status_code, answer.json()["output"]["status"]) == (200, 403)
    assert answer.json()["verification_outcome"] == "verification_failed"


def test_a_secret_goes_through_the_tunnel_in_tls_and_the_proxy_never_sees_it(at: Stage, agent: Bearer) -> None:
    answer = agent.execute("through_tls", {"path": "messages", "message": "hi"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["verification_outcome"] == "verified"
    assert f"authorization: Bearer {TOKEN}".encode() in at.safe.requests[-1]
    asked(at, 200, f"{HOST}:{port_of(at.safe.address)}")
    said = (at.proxy.folder / "access.log").read_text() + at.proxy.says() + answer.text + at.gate.log.read_text()
    assert TOKEN not in said


# ------------------------------------------------------------------------------------------------ not through it


def test_a_domain_that_squid_does_not_allow_fails_and_is_never_reached(at: Stage, agent: Bearer) -> None:
    seen = len(at.up.seen)
    failed(at, agent.execute("refused", {"path": "x"}), "denied: the egress proxy refused the upstream")
    assert len(at.up.seen) == seen
    asked(at, 403, f"{REFUSED}:{port_of(at.up.address)}")


def test_an_upstream_that_squid_can_not_reach_is_told_from_a_proxy_that_is_gone(at: Stage, agent: Bearer) -> None:
    answer = agent.execute("closed", {"path": "x"})
    failed(at, answer, "unavailable: the egress proxy could not reach the upstream")


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://other.gateway.test/", "other.gateway.test:80"),
        (f"https://{REFUSED}/", f"{REFUSED}:443"),
        (f"http://{HOST}:22/", f"{HOST}:22"),
        ("http://127.0.0.1/", "127.0.0.1:80"),
        ("http://[::1]/", "[::1]:80"),
    ],
)
def test_what_the_manifest_does_not_allow_never_reaches_squid(at: Stage, agent: Bearer, url: str, target: str) -> None:
    steps = [{"method": "GET", "url": url}, {"method": "GET", "url": f"http://{HOST}/later"}]
    before = len(at.proxy.lines())
    answer = agent.execute("probe", {"steps": steps})
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"]["results"][0]["error"]["kind"] in ("denied", "invalid_input")
    asked(at, 403, f"{HOST}:80", before)  # the second one, which was allowed to ask
    assert target not in [line.target for line in at.proxy.lines()]


def test_a_module_may_ask_the_proxy_for_what_its_manifest_allows_and_squid_has_the_last_word(
    at: Stage, agent: Bearer
) -> None:
    answer = agent.execute("probe", {"steps": [{"method": "GET", "url": f"http://{HOST}/"}]})
    error = answer.json()["output"]["results"][0]["error"]
    assert (error["kind"], error["message"]) == ("denied", "the egress proxy refused the upstream"), (
        "80 is no such port"
    )
    asked(at, 403, f"{HOST}:80")


# ------------------------------------------------------------------------------------------------ without it


@dataclass
class Outage:
    """The observations while squid was gone, and after it was back."""

    call: httpx.Response
    readiness: dict[str, Any]
    others: list[int]
    """Statuses of calls that need no proxy."""
    status: dict[str, Any]
    metrics: str
    gatectl: list[Ran]
    """`doctor` and `status` of an operator in dev mode."""
    again: httpx.Response
    """The call, once readiness said ready."""


@pytest.fixture(scope="module")
def lost(at: Stage, tmp_path_factory: pytest.TempPathFactory) -> Outage:
    """Live through one."""
    agent, operator = at.gate.agent(), at.gate.operator()
    with at.proxy.gone():
        call = agent.execute("through", {"path": "gone"})
        degraded = wait_until(at, "degraded")
        others = [
            agent.execute("text_digest", {"text": "x"}).status_code,
            agent.execute("file_write", {"path": "while-gone", "content": "x"}).status_code,
        ]
        status = operator.get("/v1/admin/status").json()
        metrics = operator.get("/metrics").text
        told = [] if at.mode == "run" else ask_gatectl(at, tmp_path_factory.mktemp("home"))
    wait_until(at, "ready")
    return Outage(call, degraded, others, status, metrics, told, agent.execute("through", {"path": "again"}))


def ask_gatectl(at: Stage, folder: Path) -> list[Ran]:
    gatectl, ready = Gatectl(folder), folder / "ready.json"
    ready.touch(mode=0o600)
    ready.write_text(json.dumps(at.gate.ready))
    gatectl.done("context", "from-ready", str(ready))
    return [gatectl.here("doctor", "--json"), gatectl.here("status")]


def test_without_squid_its_actions_fail(at: Stage, lost: Outage) -> None:
    assert (lost.call.status_code, lost.call.json()) == (502, {"error": "action_execution_failed"})
    (event,) = at.gate.events(trace_id=lost.call.headers["x-trace-id"])
    assert "the egress proxy can't be reached" in event["reason"]


def test_without_squid_readiness_is_degraded_and_nothing_else_is(lost: Outage) -> None:
    assert lost.readiness | {"actions_registered": 0} == {
        "status": "degraded", "redis": True, "opa": True, "ledger": True, "approval_store": True,
        "egress_proxy": False, "actions_registered": 0, "ledger_full": False, "crash_loops": [],
        "clock_error": None, "draining": False,
    }  # fmt: skip
    assert lost.status["status"] == "ok"
    assert lost.status["dependencies"] == {"redis": True, "opa": True, "egress_proxy": False}


def test_without_squid_other_actions_run(lost: Outage) -> None:
    assert lost.others == [200, 200]


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
