"""Authority that operators change while the gateway runs, end to end: what agents notice, and what survives."""

import threading
from typing import Any

from tests.support.background import HeldCall
from tests.support.coded import Coded
from tests.support.gateway import Bearer, Gateway, wait_for
from tests.support.own_gateway import own_gateway
from tests.support.pace import Paces
from tests.support.upstream import Upstream

ME = "dev:anonymous"
PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


gate = own_gateway("front_processes = 2\n")
"""A gateway whose policy is changed and whose leases are revoked."""


def change(operator: Bearer, what: str, *actions: str, principal: str = ME) -> dict[str, Any]:
    answer = operator.post(f"/v1/admin/policy/{what}", {"principal": principal, "actions": list(actions)})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_revoking_everything_ends_leases_and_holds_and_lets_calls_under_way_end_well(
    gate: Gateway, up: Upstream
) -> None:
    agent, idle, operator = gate.agent(), gate.agent(), gate.operator()
    hold = agent.execute("payment_transfer", PAYMENT).json()
    call = HeldCall(up, agent)
    assert operator.get("/v1/admin/intents").json()["count"] == 1
    before = operator.get("/v1/admin/epoch").json()["current_epoch"]
    answer = operator.post("/v1/admin/revoke-all")
    assert (answer.status_code, answer.json()) == (200, {"previous_epoch": before, "current_epoch": before + 1})
    assert idle.execute("text_digest", {"text": "x"}).json() == Coded("invalid_lease")
    assert idle.get(f"/v1/approvals/{hold['approval_id']}/poll").status_code == 401
    approved = operator.post(f"/v1/approvals/{hold['approval_id']}/approve")
    assert (approved.status_code, approved.json()["error"]) == (404, "approval_not_found")
    # The answer to revoke-all waits for a bounded time; a round of upkeep ends the remaining calls.
    (told,) = wait_for(
        lambda: gate.events(event_type="ApprovalExpired", session_id=agent.session_id), "the end of the hold"
    )
    assert (told["approval_id"], told["reason"]) == (hold["approval_id"], "everything of before was revoked")
    assert call.release().status() == 200
    fresh = gate.agent()
    event = gate.events(session_id=agent.session_id, decision="allow")[0]
    assert fresh.get(f"/v1/receipts/{event['receipt_id']}").json()["signature_status"] == "verified"
    assert fresh.execute("text_digest", {"text": "x"}).status_code == 200
    assert operator.get("/v1/admin/status").json()["unresolved_intents"] == 0


def test_what_is_granted_and_revoked_under_load_decides_each_call_one_way_or_the_other(gate: Gateway) -> None:
    """No call fails because of it, and evidence says by which policy each was decided."""
    agent, operator, stop, pace = gate.agent(), gate.operator(), threading.Event(), Paces.session()
    seen: list[tuple[int, str]] = []

    def load() -> None:
        while not stop.is_set():
            pace.wait()
            answer = agent.execute("text_digest", {"text": "x"})
            seen.append((answer.status_code, answer.json().get("error", "")))

    versions: dict[str, bool] = {operator.get("/v1/admin/policy").json()["policy_version"]: True}
    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            for what, may in (("revoke", False), ("grant", True)):
                versions[change(operator, what, "text_digest")["policy_version"]] = may
                told, wanted = len(seen), 200 if may else 403
                wait_for(lambda: wanted in [status for status, _ in seen[told:]], "a call decided anew")  # noqa: B023
                assert (gate.agent().execute("text_digest", {"text": "x"}).status_code == 200) is may
    finally:
        stop.set()
        for thread in threads:
            thread.join(120)
    assert set(seen) <= {(200, ""), (403, "policy_denied")}
    assert len(set(seen)) == 2
    for event in gate.events(session_id=agent.session_id, event_type="ActionCall", limit=1000):
        assert (event["decision"] == "allow") is versions[event["policy_version"]]


def test_revoking_a_right_ends_what_is_held_by_it_and_gives_the_call_back(gate: Gateway, up: Upstream) -> None:
    operator, agent, before = gate.operator(), gate.agent(max_calls=1), len(up.seen)
    payment = agent.execute("payment_transfer", PAYMENT).json()["approval_id"]
    change(operator, "revoke", "payment_transfer")
    try:
        assert operator.post(f"/v1/approvals/{payment}/approve").status_code == 404
        (told,) = wait_for(
            lambda: gate.events(event_type="ApprovalExpired", session_id=agent.session_id), "the end of the hold"
        )
        assert agent.get(f"/v1/approvals/{payment}/poll").json()["state"] == "expired"
        assert (told["approval_id"], told["reason"]) == (payment, "right_revoked")
        assert agent.execute("text_digest", {"text": "the call was given back"}).status_code == 200
    finally:
        change(operator, "grant", "payment_transfer")
    assert operator.post(f"/v1/approvals/{payment}/approve").status_code == 404
    assert len(up.seen) == before
