"""Limits of the service: the operators' rate, calls in flight, workers. A caller over a limit is told so, and may
retry.

That each rate is kept stands in tests/conformance/test_limits.py; the ceilings need a gateway that has little room.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support.background import HeldCall, in_flight
from tests.support.gateway import ANSWER_SECONDS, Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.raw_http import raw, request
from tests.support.upstream import Upstream


def test_a_stranger_can_not_use_up_the_operators_rate(gate: Gateway, agent: Bearer, operator: Bearer) -> None:
    """Sixty at once of the twenty that operators may: agents' credentials do not count there."""
    path = "/v1/approvals/apr_none/deny"

    def ask(_number: int) -> int:
        with httpx.Client(base_url=gate.ready["base_url"], timeout=ANSWER_SECONDS) as http:
            return http.post(path, headers=agent.headers("POST", path)).status_code

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, range(60))) == {401}
    assert operator.post(path).status_code == 404


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
