"""A clock and a database that fail or were changed behind the gateway's back: refused, shown, never guessed."""

import json
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from ipc.process.clock import STEP_TOLERANCE_SECONDS, iso, parse_iso
from ipc.process.exits import Exit
from tests.integration.test_postgres_ledger import run
from tests.support.background import Background
from tests.support.gateway import Bearer, Gateway, gateway, wait_for
from tests.support.ledger_file import wait_settled
from tests.support.own_gateway import own_gateway
from tests.support.upstream import Upstream

PAYMENT = {"to": "acct-1", "amount_cents": 100, "currency": "EUR"}


def database(gate: Gateway) -> sqlite3.Connection:
    """The database of a gateway, as a stranger opens it."""
    return sqlite3.connect(gate.state / "ledger.sqlite3", isolation_level=None, timeout=60)


@contextmanager
def blocked(gate: Gateway) -> Iterator[None]:
    """The file takes no writes: as with a full disk, or a neighbour that is stuck."""
    with closing(database(gate)) as connection:
        connection.execute("begin immediate")
        yield
        connection.execute("rollback")


@contextmanager
def damaged(gate: Gateway, table: str) -> Iterator[None]:
    """One table can't be found, and all others can."""
    wait_settled(gate.state / "ledger.sqlite3")
    change(gate, f"alter table {table} rename to {table}_away")
    try:
        yield
    finally:
        change(gate, f"alter table {table}_away rename to {table}")


def change(gate: Gateway, statement: str, *values: Any) -> int:
    """One statement; returns how many rows it changed."""
    with closing(database(gate)) as connection:
        return connection.execute(statement, values).rowcount


def error_of(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json().get("error")


def answered(call: Background) -> httpx.Response:
    answer = call.answer()
    assert answer is not None
    return answer


def held(agent: Bearer, **changes: Any) -> str:
    answer = agent.execute("payment_transfer", PAYMENT | changes)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["approval_id"])


mortal = own_gateway()
"""A gateway whose front is killed now and then."""


def status_of(gate: Gateway) -> "subprocess.CompletedProcess[str]":
    """A finished run of `gateway status`."""
    return run("status", "--state-dir", str(gate.state))


def next_notary(gate: Gateway) -> None:
    """Kill the notary, and the front with it, which knows the time of the newest evidence from its first words; back
    when another front answers."""
    killed = gate.child("notary")
    killed.kill()
    wait_for(lambda: [one for one in gate.children("notary") if one.pid != killed.pid], "another notary")
    next_front(gate)


def next_front(gate: Gateway) -> None:
    """Kill the front; back when another one answers."""
    killed = gate.child("front")
    killed.kill()
    wait_for(lambda: [one for one in gate.children("front") if one.pid != killed.pid], "another front")
    wait_for(gate.answers, "its first answer")


# ------------------------------------------------------------------------------------------------ clock


def test_a_clock_behind_the_newest_evidence_refuses_everything_until_it_is_right_again(mortal: Gateway) -> None:
    """A notary reads the newest evidence when it opens the ledger, so only the next one finds the corrected time.
    tests/frontend/test_clock.py tests a clock that is corrected later."""
    agent = mortal.agent()
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    assert mortal.events(limit=1), "a query brings what the journal holds to its table"
    newest = "select seq, time from events where seq = (select max(seq) from events)"
    with closing(database(mortal)) as ledger:
        seq, right = ledger.execute(newest).fetchone()
    put = "update events set time = ? where seq = ?"
    assert change(mortal, put, int((time.time() + 86_400) * 1000), seq) == 1
    next_notary(mortal)
    assert error_of(agent.execute("text_digest", {"text": "x"})) == (503, "clock_error")
    assert error_of(agent.get("/v1/receipts/rcpt_x")) == (503, "clock_error")
    lease = {"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk}
    assert error_of(mortal.http.post("/v1/leases", json=lease)) == (503, "clock_error")
    assert error_of(mortal.operator().get("/v1/admin/status")) == (503, "clock_error")
    assert mortal.http.get("/healthz").status_code == 200
    ready = mortal.http.get("/readyz")
    assert (ready.status_code, ready.json()["status"], ready.json()["ledger"]) == (503, "not_ready", True)
    told = ready.json()["clock_error"]
    assert told["cause"] == "the wall clock is earlier than the newest evidence"
    assert 0 < parse_iso(told["until"]) - time.time() < 86_400
    wait_for(lambda: status_of(mortal).returncode == Exit.FAILED, "the supervisor knows of the clock")
    assert f"clock_error until {told['until']}" in status_of(mortal).stdout
    assert change(mortal, put, right, seq) == 1
    next_notary(mortal)
    wait_for(lambda: mortal.http.get("/readyz").status_code == 200, "readiness")
    wait_for(lambda: agent.execute("text_digest", {"text": "x"}).status_code == 200, "the right time")
    assert mortal.operator().get("/v1/audit/verify").json()["intact"] is True


def test_a_clock_that_was_ahead_is_accepted_by_an_operator_and_calls_go_on(tmp_path: Path) -> None:
    text, newest = {"text": "x"}, "where seq = (select max(seq) from events)"
    accept = ("ledger", "accept-clock", "--state-dir", str(tmp_path / "state"), "--reason", "the time server was wrong")
    with gateway(tmp_path) as gate:
        before = gate.agent()
        assert before.execute("text_digest", text).status_code == 200
        assert run(*accept).returncode == Exit.LOCKED, "the gateway runs"
    wait_settled(gate.state / "ledger.sqlite3")
    right, ahead = database(gate).execute(f"select time, time + 86400000 from events {newest}").fetchone()
    assert change(gate, f"update events set time = ? {newest}", ahead) == 1
    with gateway(tmp_path) as gate:
        assert gate.http.get("/readyz").json()["clock_error"]["until"] == iso(ahead / 1000 - STEP_TOLERANCE_SECONDS)
    done = run(*accept)
    assert (done.returncode, done.stdout[:9]) == (Exit.OK, "Accepted:"), done.stderr
    assert change(gate, "update events set time = ? where time = ?", right, ahead) == 1
    with gateway(tmp_path) as gate:
        assert gate.http.get("/readyz").json()["clock_error"] is None
        assert (
            error_of(Bearer(gate.http, gate.base, before.token, before.prover).execute("text_digest", text))[0] == 401
        )
        assert gate.agent().execute("text_digest", text).status_code == 200
        (event,) = gate.events(event_type="ClockAccepted")
        assert event["change"]["by"].startswith("uid:")
        assert gate.operator().get("/v1/audit/verify").json()["intact"] is True
    assert "nothing to accept" in run(*accept).stderr


# ------------------------------------------------------------------------------------------------ budgets


def test_a_counter_that_says_less_than_nothing_is_exhausted(gate: Gateway) -> None:
    agent = gate.agent(max_calls=3)
    change(gate, "update budgets set remaining = -5 where session_id = ?", agent.session_id)
    assert error_of(agent.execute("text_digest", {"text": "x"})) == (403, "budget_exhausted")


# ------------------------------------------------------------------------------------------------ store


def test_without_the_table_of_budgets_only_what_has_a_budget_is_refused(gate: Gateway) -> None:
    free, counted = gate.agent(), gate.agent(max_calls=2)
    lease = {"scopes": ["tools:call"], "dpop_jwk": free.prover.jwk}
    with damaged(gate, "budgets"):
        assert error_of(counted.execute("text_digest", {"text": "x"})) == (503, "budget_store_unavailable")
        limited = gate.http.post("/v1/leases", json=lease | {"budgets": {"max_calls": 1}})
        assert error_of(limited) == (503, "budget_store_unavailable")
        assert free.execute("text_digest", {"text": "x"}).status_code == 200
        assert gate.http.post("/v1/leases", json=lease).status_code == 200
    event = gate.events(session_id=counted.session_id, decision="error")[0]
    assert event["error_code"] == "budget_store_unavailable"
    assert counted.execute("text_digest", {"text": "x"}).status_code == 200
    event = gate.events(session_id=counted.session_id, decision="allow", event_type="ActionCall")[0]
    assert event["budgets_before"] == {"calls_remaining": 2}


def test_without_the_table_of_approvals_only_holds_are_refused(gate: Gateway) -> None:
    agent, operator = gate.agent(max_calls=2), gate.operator()
    approval_id = held(agent, amount_cents=5)
    unavailable = (503, "approval_store_unavailable")
    with damaged(gate, "approvals"):
        refused = error_of(agent.execute("payment_transfer", PAYMENT | {"amount_cents": 6}))
        assert refused == (503, "replay_cache_unavailable")
        assert error_of(operator.post(f"/v1/approvals/{approval_id}/approve")) == unavailable
        assert error_of(agent.get(f"/v1/approvals/{approval_id}/poll")) == unavailable
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
    assert agent.get(f"/v1/approvals/{approval_id}/poll").json()["state"] == "pending"
    assert agent.execute("text_digest", {"text": "the refused hold cost nothing"}).status_code == 200


# ------------------------------------------------------------------------------------------------ ledger


def test_evidence_that_can_not_be_written_after_the_provider_ran_leaves_an_intent_that_shows(
    mortal: Gateway, up: Upstream
) -> None:
    agent, operator, end = mortal.agent(max_calls=2), mortal.operator(), up.held("unwritten")
    before = operator.get("/v1/admin/status").json()["unresolved_intents"]
    call = Background(lambda: agent.execute("http_post", {"path": "wait/unwritten", "message": "sent"}))
    wait_for(lambda: arrivals(up), "the request at the upstream")
    with blocked(mortal):
        end.set()
        answer = answered(call)
        assert answer.status_code == 500
        assert answer.json() == {"error": "evidence_persistence_failed"}
    wait_for(lambda: operator.get("/v1/admin/status").status_code == 200, "recovery")
    assert arrivals(up) == 1
    assert operator.get("/v1/admin/status").json()["unresolved_intents"] == before + 1
    assert shown_intent(operator)["principal"] == "dev:anonymous"
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200
    event = mortal.events(session_id=agent.session_id, decision="allow", event_type="ActionCall")[0]
    assert event["budgets_before"] == {"calls_remaining": 1}  # the first call was not given back
    assert error_of(agent.execute("text_digest", {"text": "x"})) == (403, "budget_exhausted")
    intent_id = shown_intent(operator)["intent_id"]
    next_front(mortal)
    assert shown_intent(operator)["intent_id"] == intent_id
    assert operator.get("/v1/audit/verify").json()["intact"] is True
    assert arrivals(up) == 1
    # Until its time is over for certain a worker might tell of it.
    refused = operator.post(f"/v1/admin/intents/{intent_id}/resolve", {"outcome": "happened"})
    assert error_of(refused) == (409, "intent_under_way")
    unknown = operator.post(f"/v1/admin/intents/{intent_id}x/resolve", {"outcome": "happened"})
    assert error_of(unknown) == (404, "intent_not_found")


def arrivals(up: Upstream) -> int:
    return sum("unwritten" in seen.path for seen in up.seen)


def shown_intent(operator: Bearer) -> dict[str, Any]:
    """The one unresolved intent of http_post."""
    intents = operator.get("/v1/admin/intents").json()["intents"]
    (shown,) = [intent for intent in intents if intent["action_id"] == "http_post"]
    return dict(shown)


def test_what_has_no_evidence_does_not_happen_and_is_given_back(gate: Gateway, up: Upstream) -> None:
    """A call, a hold, an approval and a lease, while the database takes nothing: none of them is, then or later."""
    caller, holder, approved, operator = gate.agent(max_calls=1), gate.agent(max_calls=1), gate.agent(), gate.operator()
    approval_id = held(approved, amount_cents=8)
    lease = {"scopes": ["tools:call"], "dpop_jwk": caller.prover.jwk}
    before = len(up.seen)
    with blocked(gate):
        calls = [
            Background(lambda: caller.execute("http_post", {"path": "never", "message": "sent"})),
            Background(lambda: holder.execute("payment_transfer", PAYMENT | {"amount_cents": 7})),
            Background(lambda: operator.post(f"/v1/approvals/{approval_id}/approve")),
            Background(lambda: gate.http.post("/v1/leases", json=lease)),
        ]
        refused = [error_of(answered(call)) for call in calls]
    # A call with a budget checks it first, and is refused there once the notary knows that it can't write.
    assert refused[0] in [(503, "replay_cache_unavailable"), (503, "budget_store_unavailable")]
    assert refused[1] in [(503, "replay_cache_unavailable"), (503, "budget_store_unavailable")]
    assert refused[2:] == [(503, "replay_cache_unavailable"), (503, "evidence_store_unavailable")]
    wait_for(lambda: gate.http.get("/readyz").json()["ledger"], "recovery")
    assert len(up.seen) == before
    assert operator.get("/v1/admin/status").json()["unresolved_intents"] == 0
    assert holder.session_id not in [
        item["session_id"] for item in operator.get("/v1/approvals?status=pending").json()["approvals"]
    ]
    assert approved.get(f"/v1/approvals/{approval_id}/poll").json()["state"] == "pending", "its operator may try again"
    assert operator.post(f"/v1/approvals/{approval_id}/deny").status_code == 200
    for agent in (caller, holder):
        assert agent.execute("text_digest", {"text": "given back"}).status_code == 200
    assert len(up.seen) == before
    assert operator.get("/v1/audit/verify").json()["intact"] is True


def test_a_receipt_is_shown_in_the_bytes_that_the_ledger_holds(gate: Gateway) -> None:
    agent = gate.agent()
    receipt_id = agent.execute("text_digest", {"text": "x"}).json()["receipt_id"]
    wait_settled(gate.state / "ledger.sqlite3")
    with closing(database(gate)) as ledger:
        (stored,) = ledger.execute("select bytes from receipts where receipt_id = ?", (receipt_id,)).fetchone()
    for asker in (agent, gate.operator()):
        shown = asker.get(f"/v1/receipts/{receipt_id}").content
        assert shown == bytes(stored)[:-1] + b',"signature_status":"verified"}'


# ------------------------------------------------------------------------------------------------ holds


def test_a_claim_that_its_front_did_not_live_to_settle_is_failed_and_given_back(mortal: Gateway, up: Upstream) -> None:
    agent, before = mortal.agent(max_calls=1), len(up.seen)
    approval_id = held(agent)
    outcome = json.dumps({"claimed_by": "dev", "claimed_at": "2026-01-01T00:00:00.000Z"})
    statement = "update approvals set state = 'claimed', holder = 'front-1-dead', outcome = ? where approval_id = ?"
    assert change(mortal, statement, outcome, approval_id) == 1
    polled = agent.get(f"/v1/approvals/{approval_id}/poll").json()
    assert (polled["state"], polled["status"]) == ("claimed", "pending")
    next_front(mortal)
    poll = f"/v1/approvals/{approval_id}/poll"
    wait_for(lambda: agent.get(poll).json().get("outcome") == "failed", "recovery by the next front")
    assert len(up.seen) == before
    assert error_of(mortal.operator().post(f"/v1/approvals/{approval_id}/approve"))[0] == 404
    assert agent.execute("text_digest", {"text": "given back"}).status_code == 200
