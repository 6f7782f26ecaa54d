"""Held calls that need several approvals or count for caps, as an operator is shown them."""

from gateway_client.approval_signatures import hash_of_shown
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.decoding import decode

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.scripted_gateway import scripted_gateway
from tests.support.shown_approval import APPROVE, DETAIL, EXECUTED, SHOW


def test_an_approval_of_several_says_how_many_are_given(gatectl: Gatectl) -> None:
    count = {"given": 1, "needed": 2, "groups": {"sec\x1b": 1}, "by": [{"approved_by": "dev"}]}
    given = {"decision": "pending_approval", "approval_id": "apr_1", "action_id": "http_fetch", "trace_id": "trc_1"}
    detail = DETAIL | {"approvals": count}
    page = {"approvals": [detail], "count": 1, "total": 1}
    script = {SHOW: (200, detail), APPROVE: (202, given | {"approvals": count}), "GET /v1/approvals": (200, page)}
    with scripted_gateway(script) as server:
        there = pointed_at(gatectl, server.url)
        out = there.done("approvals", "approve", "apr_1", "--yes").out
        listed, watched = there.done("approvals").out, there.done("approvals", "watch", "--for", "0").out
    told = "1 of 2 approvals (1 of sec\\u001b): dev"
    assert told in out
    assert told in listed
    assert f"http_fetch · {told}" in watched
    assert "approved, and not run yet: 1 of 2 approvals are given" in out


def test_a_held_call_that_counts_for_caps_shows_how_they_stand_and_can_be_signed(gatectl: Gatectl) -> None:
    cap = {"pointer": "/amount_cents\u202e", "per": "principal", "total": "400", "with_this": "520.5",
           "hold_above": "500", "deny_above": None, "window_seconds": 86_400}  # fmt: skip
    honest = DETAIL | {"shown_hash": hash_of_shown(decode(ApprovalDetail, DETAIL, "detail")), "caps": [cap]}
    with scripted_gateway({SHOW: (200, honest), APPROVE: (200, EXECUTED)}) as server:
        done = pointed_at(gatectl, server.url).done("approvals", "approve", "apr_1", "--yes")
    line = "/amount_cents\\u202e per principal within 86400 s: 520.5 with this call, 400 without it; held above 500"
    assert line in " ".join(done.out.split())
    assert "\nsigned by " in done.out
