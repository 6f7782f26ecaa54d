"""Limits of the service: the operators' rate, calls in flight, workers. A caller over a limit is told so, and may
retry.

That each rate is kept stands in tests/conformance/test_limits.py; the ceilings need a gateway that has little room.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import httpx

from tests.support.background import HeldCall, in_flight
from tests.support.gateway import ANSWER_SECONDS, Bearer, Gateway, wait_for
from tests.support.own_gateway import own_gateway
from tests.support.raw_http import RawConnection, raw, request
from tests.support.upstream import Upstream

LARGE = 6
"""Bodies of a megabyte that one principal may have under way where eight fit."""


def test_a_stranger_can_not_use_up_the_operators_rate(gate: Gateway, agent: Bearer, operator: Bearer) -> None:
    """Sixty at once of the twenty that operators may: agents' credentials do not count there."""
    path = "/v1/approvals/apr_none/deny"

    def ask(_number: int) -> int:
        with httpx.Client(base_url=gate.ready["base_url"], timeout=ANSWER_SECONDS, verify=False) as http:
            return http.post(path, headers=agent.headers("POST", path)).status_code

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, range(60))) == {401}
    assert operator.post(path).status_code == 404


# ------------------------------------------------------------------------------------------------ ceilings


narrow = own_gateway(
    "[limits]\nmax_in_flight = 2\nworker_wait_seconds = 3\nbody_timeout_seconds = 300\n"
    "[workers]\nhttp = {min_spare = 1, max = 1}\n"
)
"""A gateway with two places and one worker for HTTP."""


def has_in_flight(gate: Gateway, count: int) -> bool:
    return in_flight(gate) == count


wide = own_gateway("[limits]\nmax_in_flight = 24\nbody_timeout_seconds = 300\n")
"""A gateway with room for eight bodies of the largest size, and for more calls."""


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


def test_a_caller_with_many_bytes_of_bodies_under_way_may_send_no_more_large_ones(wide: Gateway) -> None:
    """Bodies that never come whole: each is announced, and counts until its call ends."""
    base, path, size = wide.ready["base_url"], "/v1/actions/text_digest/execute", 1_000_000
    agent = wide.agent()

    def large(line: RawConnection) -> None:
        head = request("POST", path, agent.headers("POST", path) | {"Content-Length": str(size)})
        line.send(head + b'{"text":"')

    with ExitStack() as stack:
        for count in range(1, LARGE + 1):
            large(stack.enter_context(raw(base)))
            wait_for(partial(has_in_flight, wide, count), "a call that waits for its body")
        late = stack.enter_context(raw(base))
        large(late)
        reply = late.reply("POST")
        assert reply is not None
        assert (reply.status, reply.json) == (503, {"error": "overloaded"})
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200, "a small body is always taken"
        assert 'gate_calls_refused_total{reason="share"} 1.0' in wide.operator().get("/metrics").text
    wait_for(lambda: in_flight(wide) == 0, "the end of the calls")
    assert agent.execute("text_digest", {"text": "x" * (size - 100)}).status_code == 200


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
