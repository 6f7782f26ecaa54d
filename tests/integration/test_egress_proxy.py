"""Actions that go out through the egress proxy, on a gateway of each kind and a real squid."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.gateway import Bearer, wait_for
from tests.support.proxied import HOST, REFUSED, TOKEN, Stage, stage


@pytest.fixture(scope="module", params=["dev", "run"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Gateway, squid and upstreams."""
    with stage(request.param, tmp_path_factory.mktemp(request.param)) as staged:
        yield staged


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
