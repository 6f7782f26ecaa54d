"""The steps of the demo, in order. Each does one thing, checks what came back, and says it in one line.

A step that does not behave raises; the teller (contrib/demo/__main__.py) records it and goes on.
"""

import hashlib
import time
from collections.abc import Callable
from typing import Any

from contrib.demo import evidence
from contrib.demo.cast import ANSWER_SECONDS, CALL_SECONDS, START_SECONDS, Cast
from contrib.demo.proofs import signed_headers
from contrib.demo.upstream import HELD_PATH

PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


class Misbehaved(Exception):
    """A step came out differently from what the product promises."""


def expect(condition: object, what: str) -> None:
    """Raises Misbehaved with `what` unless the condition holds."""
    if not condition:
        raise Misbehaved(what)


def verified(answer: dict[str, Any]) -> str:
    """The common part of an executed call's line."""
    expect("receipt_id" in answer, f"not executed: {answer}")
    expect(answer["verification"]["is_fully_successful"], f"not fully successful: {answer['verification']}")
    return f"executed · {answer['verification']['outcome']} · {answer['receipt_id'][:13]}…"


def refused(answer: dict[str, Any], word: str) -> str:
    """The line of a refused call, which must hold `word`."""
    expect(word in answer.get("message", ""), f"expected {word}, got {answer}")
    return str(answer["message"])


def lease(cast: Cast) -> str:
    answer = cast.agent.do("connect", max_calls=12)
    return f"{answer['session_id'][:12]}… for dev:anonymous, 12 calls"


def text_digest(cast: Cast) -> str:
    answer = cast.agent.do("execute", action="text_digest", body={"text": "hello"})
    line = verified(answer)
    expect(answer["output"]["sha256"] == hashlib.sha256(b"hello").hexdigest(), "wrong digest")
    return line


def file_write(cast: Cast) -> str:
    answer = cast.agent.do("execute", action="file_write", body={"path": "notes/hello.txt", "content": "hello"})
    line = verified(answer)
    path = cast.state / "files" / "notes" / "hello.txt"
    expect(path.read_bytes() == b"hello", "the file does not hold what was written")
    return f"{line} · fs_hash {hashlib.sha256(path.read_bytes()).hexdigest()[:8]}… of files/notes/hello.txt"


def http_fetch(cast: Cast) -> str:
    line = verified(cast.agent.do("execute", action="http_fetch", body={"path": "weather/today"}))
    expect(cast.world.seen[-1]["path"] == "/weather/today", "the upstream saw another path")
    return f"{line} · GET /weather/today"


def http_post(cast: Cast) -> str:
    line = verified(cast.agent.do("execute", action="http_post", body={"path": "messages", "message": "good morning"}))
    token = cast.world.seen[-1]["headers"].get("authorization", "")
    expect(token.startswith("Bearer "), "the upstream saw no secret")
    return f"{line} · the host added a secret of {len(token) - 7} characters that the agent never saw"


def denied(cast: Cast) -> str:
    return refused(cast.agent.do("execute", action="forbidden_export", body={"table": "customers"}), "policy_denied")


def schema_violation(cast: Cast) -> str:
    return refused(cast.agent.do("execute", action="text_digest", body={"text": 5}), "schema_violation")


def replayed_proof(cast: Cast) -> str:
    path = "/v1/admin/status"
    operator = cast.operator
    headers = signed_headers(operator.key, operator.api_key, "GET", operator.base + path)
    first, second = (cast.http.get(path, headers=headers) for _ in range(2))
    expect(first.status_code == 200, f"the first use answered {first.status_code}")
    expect(second.json() == {"error": "replay_detected"}, f"the second use answered {second.text}")
    return f"first use {first.status_code}, second use {second.status_code} replay_detected"


def budget(cast: Cast) -> str:
    cast.agent.do("connect", max_calls=2)
    for text in ("1", "2"):
        verified(cast.agent.do("execute", action="text_digest", body={"text": text}))
    answer = cast.agent.do("execute", action="text_digest", body={"text": "3"})
    expect(answer.get("error") == "LatchGateBudgetExhausted", f"expected an exhausted budget, got {answer}")
    cast.agent.do("connect", max_calls=100)
    return f"two calls of two, then: {answer['message']}"


def held(cast: Cast) -> str:
    answer = cast.agent.do("execute", action="payment_transfer", body=PAYMENT)
    approval_id = answer["approval_id"]
    listed = cast.operator.get("/v1/approvals?status=pending")["approvals"]
    expect(approval_id in [item["approval_id"] for item in listed], "the operator's list does not show it")
    detail = cast.operator.get(f"/v1/approvals/{approval_id}")
    expect(detail["request"] == PAYMENT, "the operator sees another request")
    return f"{approval_id[:12]}… waits for an operator · {detail['approved_targets'][0]}"


def approved(cast: Cast) -> str:
    approval_id = cast.operator.get("/v1/approvals?status=pending")["approvals"][0]["approval_id"]
    before = len(cast.world.seen)
    result = cast.operator.post(f"/v1/approvals/{approval_id}/approve")
    expect(len(cast.world.seen) == before + 1, "the upstream did not see exactly one transfer")
    polled = cast.agent.do("poll", approval_id=approval_id)
    expect(polled["status"] == "approved", f"the agent polls {polled}")
    receipt = cast.agent.do("receipt", receipt_id=polled["receipt_id"])
    expect(receipt["is_fully_successful"], f"the receipt says {receipt}")
    who = result["approval"]["approved_by"]
    return f"by {who} · 250.00 EUR to acct-7 · executed · {result['verification_outcome']}: http_status 201"


def turned_down(cast: Cast) -> str:
    answer = cast.agent.do("execute", action="payment_transfer", body={**PAYMENT, "amount_cents": 99_999_00})
    before = len(cast.world.seen)
    cast.operator.post(f"/v1/approvals/{answer['approval_id']}/deny", {"reason": "over the limit"})
    polled = cast.agent.do("poll", approval_id=answer["approval_id"])
    expect(polled["status"] == "denied", f"the agent polls {polled}")
    expect(len(cast.world.seen) == before, "something was sent")
    return f"denied by an operator: {polled['reason']} · nothing sent"


def too_much_fuel(cast: Cast) -> str:
    body = {"fuel": 50_000_000_000, "memory_mb": 0, "seconds": 0}
    refused(cast.agent.do("execute", action="spin", body=body), "action_execution_failed")
    event = cast.operator.get("/v1/audit/events?action_id=spin&decision=error&limit=1")["events"][0]
    return f"502 action_execution_failed · {event['reason']}"


def killed_worker(cast: Cast) -> str:
    cast.agent.begin("execute", action="spin", body={"fuel": 0, "memory_mb": 0, "seconds": CALL_SECONDS})
    victim = cast.busy_worker()
    victim.kill()
    refused(cast.agent.answer(), "action_execution_failed")
    event = cast.operator.get("/v1/audit/events?action_id=spin&decision=error&limit=1")["events"][0]
    expect(event.get("receipt_id"), "the killed call left no receipt")
    verified(cast.agent.do("execute", action="text_digest", body={"text": "next"}))
    return f"SIGKILL to worker {victim.pid} · 502 with receipt {event['receipt_id'][:13]}… · the next call is fine"


def signatures(cast: Cast) -> str:
    count = evidence.verify_receipts(cast.operator)
    expect(count > 0, "there are no receipts")
    return f"{count} receipts, {count} signatures verified by this script from /v1/receipt-keys"


def chain(cast: Cast) -> str:
    report = cast.operator.get("/v1/audit/verify")
    expect(report["intact"], f"the chain is broken at {report['broken_at']}")
    return f"{report['events_checked']} events, chain intact"


def tampered(cast: Cast) -> str:
    return evidence.tamper_with_a_copy(cast)


def drain(cast: Cast) -> str:
    cast.agent.begin("execute", action="http_fetch", body={"path": HELD_PATH[1:]})
    deadline = time.monotonic() + ANSWER_SECONDS
    while all(one["path"] != HELD_PATH for one in list(cast.world.seen)):
        expect(time.monotonic() < deadline, "the call never came to its upstream")
        time.sleep(0.01)
    in_flight = cast.operator.post("/v1/admin/drain")["in_flight_executions"]
    expect(in_flight == 1, f"{in_flight} calls in flight")
    cast.world.released.set()
    verified(cast.agent.answer())
    answer = cast.agent.do("execute", action="text_digest", body={"text": "late"})
    refused(answer, "draining")
    cast.gateway.terminate()
    code = cast.gateway.wait(START_SECONDS)
    expect(code == 0, f"the gateway ended with {code}")
    return f"{in_flight} in flight → 0, new calls refused, exit {code}"


STEPS: tuple[tuple[str, Callable[[Cast], str]], ...] = (
    ("lease", lease),
    ("text_digest", text_digest),
    ("file_write", file_write),
    ("http_fetch", http_fetch),
    ("http_post", http_post),
    ("forbidden_export", denied),
    ("schema violation", schema_violation),
    ("replayed proof", replayed_proof),
    ("budget", budget),
    ("payment held", held),
    ("payment approved", approved),
    ("payment denied", turned_down),
    ("fuel limit", too_much_fuel),
    ("killed worker", killed_worker),
    ("signatures", signatures),
    ("audit chain", chain),
    ("one byte changed", tampered),
    ("drain", drain),
)
