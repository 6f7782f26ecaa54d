"""Limits of the service."""

import json
import time
from typing import Any

import httpx
import pytest

from ipc.settings import LimitSettings
from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import BOTH_MODES, row
from tests.conformance.outages import Outage
from tests.conformance.stories import Restart
from tests.support.gateway import Prover
from tests.support.raw_http import raw, request

MB = 1_048_576
PATH = "/v1/actions/text_digest/execute"
CALLS = 100
"""The calls of one session."""


@row("limits/body", "execute-errors/413")
def test_a_megabyte_passes_and_one_byte_more_does_not(gate: Deployment, agent: Caller) -> None:
    frame = len('{"text":""}')
    for size, status in ((MB, 200), (MB + 1, 413)):
        body = b'{"text":"' + b"x" * (size - frame) + b'"}'
        assert len(body) == size
        with raw(gate.gateway.ready["client_socket"]) as line:
            reply = line.ask(request("POST", PATH, agent.headers("POST", PATH), body), "POST")
        assert reply is not None
        assert reply.status == status


def hurried(ask: Any, count: int) -> tuple[dict[int, int], float]:
    """Status -> how many of `count` requests in a row had it; and how long they took."""
    counts: dict[int, int] = {}
    began = time.monotonic()
    for _ in range(count):
        answer: httpx.Response = ask()
        counts[answer.status_code] = counts.get(answer.status_code, 0) + 1
        if answer.status_code == 429:
            assert answer.json() == {"error": "rate_limit_exceeded"}
            assert int(answer.headers["retry-after"]) >= 1
    return counts, time.monotonic() - began


def holds(found: dict[int, int], passed: int, seconds: float, rate: int) -> bool:
    """No more than the bucket held and gained; and none refused that it had room for."""
    return found.get(passed, 0) <= rate * (1 + seconds) + 1 and (429 in found or seconds > 1)


@BOTH_MODES
@row("limits/lease-rate")
def test_fifty_leases_a_second(gate: Deployment) -> None:
    body = {"scopes": ["tools:call"], "dpop_jwk": Prover().jwk}
    counts, seconds = hurried(lambda: gate.client.post("/v1/leases", json=body), 100)
    assert set(counts) <= {200, 429}
    assert holds(counts, 200, seconds, 50)


@row("limits/write-rate")
def test_twenty_writes_a_second_whatever_they_write(gate: Deployment, operator: Caller) -> None:
    paths = ("/v1/approvals/apr_none/deny", "/v1/approvals/apr_none/approve")

    def ask() -> httpx.Response:
        path = paths[int(time.monotonic() * 1000) % 2]
        return gate.admin.post(path, headers=operator.headers("POST", path))

    counts, seconds = hurried(ask, 45)
    assert set(counts) <= {404, 429}
    assert holds(counts, 404, seconds, 20)
    assert operator.call("GET", "/v1/admin/status").status_code == 200  # reads have their own


@row("limits/read-rate")
def test_a_hundred_reads_a_second_whatever_they_read(gate: Deployment, operator: Caller) -> None:
    paths = ("/v1/approvals/apr_none", "/v1/receipts/rcpt_none")

    def ask() -> httpx.Response:
        path = paths[int(time.monotonic() * 1000) % 2]
        return gate.admin.get(path, headers=operator.headers("GET", path))

    counts, seconds = hurried(ask, 220)
    assert set(counts) <= {404, 429}
    assert holds(counts, 404, seconds, 100)


@pytest.fixture(scope="module")
def many(gate: Deployment) -> Deployment:
    """A gateway with more than 200 approvals and more than 1000 events."""
    agent = gate.agent()
    gate.held(agent, body={"text": "one of many"})
    same = "principal, epoch, bytes, summary, body"
    columns = f"session_id, action_id, request_hash, state, created_at, expires_at, {same}, holder, outcome"
    copy = (
        f"insert into approvals (approval_id, {columns}) select 'apr_copy_' || value, session_id, action_id, "
        f"request_hash, 'denied', created_at - value, expires_at, {same}, null, '{{}}' from approvals, "
        "(with recursive n (value) as (select 1 union all select value + 1 from n where value < 220) "
        "select value from n) "
        "where session_id = ? and approval_id not like 'apr_copy_%'"
    )
    assert gate.change(copy, agent.session_id) == 220
    ((count,),) = gate.select("select count(*) from events")
    for number in range(max(0, 1010 - count)):
        if number % CALLS == 0:  # each session has a rate of its own
            agent = gate.agent()
        assert agent.execute("text_digest", {"text": "one of many"}).status_code == 200  # refusals are counted
    return gate


@row("limits/approvals-default", "limits/approvals-max")
def test_fifty_approvals_are_listed_by_default_and_two_hundred_at_most(many: Deployment) -> None:
    assert len(many.operator().get("/v1/approvals").json()["approvals"]) == 50
    assert len(many.operator().get("/v1/approvals?limit=200").json()["approvals"]) == 200
    assert many.operator().get("/v1/approvals?limit=201").status_code == 400


@row("limits/events-default", "limits/events-max")
def test_a_hundred_events_are_listed_by_default_and_a_thousand_at_most(many: Deployment) -> None:
    assert len(many.events()) == 100
    assert len(many.events(limit=1000)) == 1000
    assert many.operator().get("/v1/audit/events?limit=1001").status_code == 400


@row("limits/policy-timeout")
def test_the_policy_engine_has_a_second(outage: Outage) -> None:
    assert outage.frozen.json() == {"error": "policy_engine_timeout"}
    assert outage.seconds > 0.95
    assert "no answer within 1.0 s" in [one.get("cause") for one in outage.said]


@row("limits/secrets-cache")
def test_a_changed_secrets_file_counts_at_once(gate: Deployment, agent: Caller) -> None:
    body = {"path": "x", "message": "m"}
    first = agent.execute("some_secret", body)  # the secret is in the cache now; no upstream receives it
    assert (first.status_code, "X-Receipt-Id" in first.headers) == (502, True)
    before = gate.secrets.read_text()
    gate.secrets.write_text(json.dumps({"bank_token": "bank-91aa"}))
    try:
        answer = agent.execute("some_secret", body)
        assert (answer.status_code, answer.json()["error"]) == (502, "action_execution_failed")
        assert "X-Receipt-Id" not in answer.headers, "nothing was dispatched"
    finally:
        gate.secrets.write_text(before)
    assert "X-Receipt-Id" in agent.execute("some_secret", body).headers


@row("limits/graceful-shutdown")
def test_a_signal_leaves_calls_their_time_and_thirty_seconds_of_it(restart: Restart) -> None:
    assert restart.before.ended_in_time == 200
    assert LimitSettings().drain_seconds >= 30
