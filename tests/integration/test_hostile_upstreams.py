"""Upstreams that misbehave: whatever they send, the call ends in time, with evidence, and touches nothing else."""

import json
from typing import Any

import pytest

from tests.support.gateway import Bearer, Gateway
from tests.support.hostile_upstream import SCRIPTS, HostileUpstream


@pytest.fixture(scope="module")
def gate(beset: Gateway) -> Gateway:
    """The gateway whose upstream is hostile."""
    return beset


FAILS = "provider_failure"
BROKEN = (FAILS, "unavailable")
LATE = ("timeout", "time limit")
OUTCOMES: dict[str, tuple[str, str] | Any] = {
    # (kind of the normalised result, a word of its reason), or the body that the agent gets.
    "fine": {"ok": True},
    "endless-body": (FAILS, "too-large"),
    "endless-chunks": (FAILS, "too-large"),
    "endless-headers": (FAILS, "too-large"),
    "endless-header": (FAILS, "too-large"),
    "endless-status-line": (FAILS, "too-large"),
    "endless-interim": BROKEN,
    "endless-chunk-extension": (FAILS, "too-large"),
    "endless-trailers": (FAILS, "too-large"),
    "many-headers": (FAILS, "too-large"),
    "announced-huge": (FAILS, "too-large"),
    "silent": LATE,
    "slow-head": LATE,
    "slow-body": LATE,
    "stays-open": LATE,
    "more-than-announced": {},
    "folded-header": BROKEN,
    "deep-but-whole": json.loads("[" * 31 + "]" * 31),
    "prototype": {"__proto__": {"decision": "executed"}, "receipt_id": "rcpt_evil"},
    "nothing-but-spaces": " " * 500,
    "control-characters": {"a": "\u0000\u001b[2J\u202e"},
    # JSON that can't be signed as such goes to the agent as the text that it is.
    "half-a-surrogate": '{"a":"\\ud800"}',
    "not-json": "{nope",
    "nan": '{"a":NaN}',
    "name-twice": '{"a":1,"a":2}',
    "beyond-integers": '{"a":123456789012345678901234567890}',
    "beyond-floats": '{"a":1e999}',
    "deep": "[" * 5_000 + "]" * 5_000,
}


def receipt_of(gate: Gateway, agent: Bearer) -> dict[str, Any]:
    event = gate.events(session_id=agent.session_id, event_type="ActionCall")[0]
    receipt: dict[str, Any] = agent.get(f"/v1/receipts/{event['receipt_id']}").json()
    assert receipt["signature_status"] == "verified"
    return receipt


@pytest.mark.parametrize(
    "name", [name for name in SCRIPTS if not name.startswith(("redirect", "compressed", "not-utf"))]
)
def test_a_call_to_a_hostile_upstream_ends_in_time_and_says_how(
    gate: Gateway, agent: Bearer, hostile: HostileUpstream, name: str
) -> None:
    wanted = OUTCOMES.get(name, BROKEN)
    answer = agent.execute("short_fetch" if wanted == LATE else "small_fetch", {"path": name})
    receipt = receipt_of(gate, agent)
    if isinstance(wanted, tuple):
        kind, word = wanted
        assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"}), answer.text[:300]
        assert receipt["normalized_result"]["kind"] == kind, receipt["normalized_result"]
        assert word in receipt["normalized_result"]["reason"]
        assert receipt["verification_outcome"] == {"status": "provider_failed_before_verification"}
        assert hostile.address not in json.dumps(receipt)
    else:
        assert answer.status_code == 200, (answer.text, receipt["normalized_result"])
        assert answer.json()["output"] == {"status": 200, "body": wanted}
        assert answer.json()["receipt_id"] == receipt["receipt_id"]
    assert not hostile.trapped


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_nobody_follows_it(
    gate: Gateway, agent: Bearer, hostile: HostileUpstream, status: int
) -> None:
    before = len(hostile.seen)
    answer = agent.execute("small_fetch", {"path": f"redirect-{status}"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"] == {"status": status, "body": {}}
    assert answer.json()["verification"] == {"outcome": "verification_failed", "is_fully_successful": False}
    assert len(hostile.seen) == before + 1
    assert not hostile.trapped


@pytest.mark.parametrize("name", ["compressed", "not-utf-8"])
def test_bytes_that_are_no_text_travel_as_base64(gate: Gateway, agent: Bearer, name: str) -> None:
    answer = agent.execute("small_fetch", {"path": name})
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"]["body_encoding"] == "base64"
    receipt_of(gate, agent)


def test_a_post_that_broke_off_is_sent_once(gate: Gateway, agent: Bearer, hostile: HostileUpstream) -> None:
    for name in ("reset", "nothing", "half-a-head"):
        before = len(hostile.seen)
        assert agent.execute("http_post", {"path": name, "message": "once"}).status_code == 502
        assert len(hostile.seen) == before + 1


def test_hostile_answers_leave_the_worker_fit_for_the_next_call(gate: Gateway, agent: Bearer) -> None:
    assert agent.execute("small_fetch", {"path": "fine"}).status_code == 200  # an earlier call may have cost its worker
    before = {process.pid for process in gate.children("worker http")}
    for name in ("endless-body", "garbage", "deep", "half-a-chunk", "nul-in-a-header"):
        agent.execute("small_fetch", {"path": name})
        assert agent.execute("small_fetch", {"path": "fine"}).status_code == 200
    assert {process.pid for process in gate.children("worker http")} <= before
    assert gate.operator().get("/v1/admin/status").json()["unresolved_intents"] == 0
    assert gate.operator().get("/v1/audit/verify").json()["intact"] is True
