"""Limits of the service: requests a second, calls in flight, workers. What is over one is told so, and may come again.

The rates are those of the gateway that all share, and it has them whole again soon after; the ceilings need one that
has little room.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.background import HeldCall, in_flight
from tests.support.gateway import ANSWER_SECONDS, Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.raw_http import raw, request
from tests.support.upstream import Upstream

# ------------------------------------------------------------------------------------------------ rates


def hurry(gate: Gateway, call: Any, count: int) -> Counter[int]:
    """Status codes of many calls at once."""
    codes: Counter[int] = Counter()
    lock = threading.Lock()
    left = iter(range(count))

    def work() -> None:
        with httpx.Client(base_url=gate.ready["base_url"], timeout=ANSWER_SECONDS) as http:
            while True:
                with lock:
                    if next(left, None) is None:
                        return
                answer = call(http)
                if answer.status_code == 429:
                    assert answer.json() == {"error": "rate_limit_exceeded"}
                    assert answer.headers["retry-after"] == "1"
                with lock:
                    codes[answer.status_code] += 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    return codes


def test_more_than_fifty_leases_a_second_are_429(gate: Gateway, agent: Bearer) -> None:
    lease = {"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk}
    began = time.monotonic()
    codes = hurry(gate, lambda http: http.post("/v1/leases", json=lease), 150)
    took = time.monotonic() - began
    assert set(codes) <= {200, 429}
    assert codes[200] <= 50 + 50 * took + 1
    assert codes[429] or took > 1.9
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    wait_for(lambda: gate.http.post("/v1/leases", json=lease).status_code == 200, "another lease")


def test_more_than_twenty_writes_of_operators_a_second_are_429_and_reads_go_on(gate: Gateway, operator: Bearer) -> None:
    path = "/v1/approvals/apr_none/deny"
    began = time.monotonic()
    codes = hurry(gate, lambda http: http.post(path, headers=operator.headers("POST", path)), 60)
    took = time.monotonic() - began
    assert set(codes) <= {404, 429}
    assert codes[404] <= 20 + 20 * took + 1
    assert codes[429] or took > 1.9
    assert operator.get("/v1/admin/status").status_code == 200


def test_more_than_a_hundred_reads_of_operators_a_second_are_429_and_writes_go_on(
    gate: Gateway, operator: Bearer
) -> None:
    path = "/v1/approvals/apr_none"
    began = time.monotonic()
    codes = hurry(gate, lambda http: http.get(path, headers=operator.headers("GET", path)), 250)
    took = time.monotonic() - began
    assert set(codes) <= {404, 429}
    assert codes[404] <= 100 + 100 * took + 1
    assert codes[429] or took > 1.4
    assert operator.post("/v1/approvals/apr_none/deny").status_code == 404
    wait_for(lambda: operator.get(path).status_code == 404, "another read")


def test_a_stranger_can_not_use_up_the_operators_rate(gate: Gateway, agent: Bearer, operator: Bearer) -> None:
    path = "/v1/approvals/apr_none/deny"
    codes = hurry(gate, lambda http: http.post(path, headers=agent.headers("POST", path)), 60)
    assert codes == {401: 60}
    wait_for(lambda: operator.post(path).status_code == 404, "a write of the operator")


# ------------------------------------------------------------------------------------------------ ceilings


@pytest.fixture(scope="module")
def narrow(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with two places and one worker for HTTP."""
    folder: Path = tmp_path_factory.mktemp("narrow")
    config = f"{patient(folder / 'actions')}[limits]\nmax_in_flight = 2\nworker_wait_seconds = 0.5\n"
    config += "body_timeout_seconds = 300\n[workers]\nhttp = {min_spare = 1, max = 1}\n"
    with gateway(folder, config_for(up.address, config)) as running:
        yield running


def test_over_the_ceiling_of_calls_in_flight_it_is_503_at_once_and_leaves_no_event(
    narrow: Gateway, up: Upstream
) -> None:
    late, path = narrow.agent(max_calls=1), "/v1/actions/text_digest/execute"
    call = HeldCall(up, narrow.agent())
    with raw(narrow.ready["base_url"]) as line:
        whole = request("POST", path, narrow.agent().headers("POST", path), b'{"text":"x"}')
        line.send(whole[:-1])
        wait_for(lambda: in_flight(narrow) == 2, "two calls in flight")
        answer = late.execute("text_digest", {"text": "x"})
        assert (answer.status_code, answer.json()) == (503, {"error": "overloaded"})
        assert answer.headers["retry-after"] == "1"
        assert narrow.http.get("/healthz").status_code == 200
        reply = line.ask(whole[-1:], "POST")
    assert reply is not None
    assert (reply.status, call.release().status()) == (200, 200)
    assert late.execute("text_digest", {"text": "x"}).status_code == 200
    assert len(narrow.events(session_id=late.session_id, event_type="ActionCall")) == 1


def test_without_a_worker_in_time_a_call_is_503_and_gives_its_budget_back(narrow: Gateway, up: Upstream) -> None:
    late = narrow.agent(max_calls=1)
    call = HeldCall(up, narrow.agent())
    answer = late.execute("http_fetch", {"path": "x"})
    assert (answer.status_code, answer.json()) == (503, {"error": "overloaded"})
    assert answer.headers["retry-after"] == "1"
    events = narrow.events(session_id=late.session_id, decision="error")
    assert [event["error_code"] for event in events] == ["overloaded"]
    write = {"path": "a", "content": "b"}
    wait_for(lambda: late.execute("file_write", write).status_code == 200, "a worker of another pool")
    assert call.release().status() == 200
    assert narrow.operator().get("/v1/admin/status").json()["unresolved_intents"] == 0
