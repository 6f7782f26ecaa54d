"""Tables and summaries: what stands together, in which order, and how it is drawn."""

import re
from typing import Any

import pytest
from gateway_client.cli.paging import by_principal
from gateway_client.results import Approval
from gateway_client.wire.decoding import decode

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.scripted_gateway import scripted_gateway


def counts(**given: int) -> dict[str, int]:
    return {"allow": 0, "deny": 0, "pending_approval": 0, "error": 0} | given


SUMMARY: dict[str, Any] = {
    "step": "hour", "complete": False,
    "buckets": [
        {"start": "2026-11-21T10:00:00.000Z", "counts": counts(allow=4, deny=1)},
        {"start": "2026-11-21T11:00:00.000Z", "counts": counts()},
        {"start": "2026-11-21T12:00:00.000Z", "counts": counts(allow=1, pending_approval=1)},
    ],
    "actions": [{"action_id": "refund\x1b", "count": 4}, {"action_id": "digest", "count": 1}],
    "principals": [{"principal": None, "count": 7}],
    "sums": [{"action_id": "refund", "pointer": "/amount", "sum": "120.50"}],
}  # fmt: skip
SHOWN = f"""\
# allow  ? held  x deny  ! error
2026-11-21 10:00  5  {"#" * 38}{"x" * 10}
2026-11-21 11:00  0
2026-11-21 12:00  2  {"#" * 10}{"?" * 10}
total (UTC)  allow 5  held 1  deny 1  error 0

busiest actions
  refund\\u001b  4  {"#" * 48}
  digest        1  {"#" * 12}

busiest principals
  others  7  {"#" * 48}

ACTION  VALUE    SUM
refund  /amount  120.50
"""


def test_calls_over_time_are_bars_of_plain_characters_without_a_terminal(gatectl: Gatectl) -> None:
    with scripted_gateway({"GET /v1/audit/summary": (200, SUMMARY)}) as server:
        ran = pointed_at(gatectl, server.url).done("audit", "summary")
    assert ran.out == SHOWN
    assert "still being counted" in ran.err


def approval(approval_id: str, principal: str | None) -> Approval:
    told = {"approval_id": approval_id, "action_id": "a", "state": "pending", "principal": principal}
    return decode(Approval, told, "approval")


def test_approvals_of_one_principal_stand_together_newest_first_in_each_group() -> None:
    newest_first = [
        approval("5", "ann"),
        approval("4", "bob"),
        approval("3", None),
        approval("2", "ann"),
        approval("1", "bob"),
    ]
    assert [one.approval_id for one in by_principal(newest_first)] == ["5", "2", "4", "1", "3"]


HELD: dict[str, Any] = {
    "principal": "billing-agent", "action_id": "pay", "trace_id": "trc_1", "decision": "hold", "rule": "hold_high_risk",
    "shown": {"quorum": {"count": 3, "groups": {"finance": 1, "sec\x1b": 1}}}, "sends": None,
}  # fmt: skip


def test_a_preview_says_how_many_approvals_the_call_would_need(gatectl: Gatectl) -> None:
    asked = ("actions", "preview", "pay", "--principal", "billing-agent", "--request", "{}")
    with scripted_gateway({"POST /v1/admin/actions/pay/preview": (200, HELD)}) as server:
        out = pointed_at(gatectl, server.url).done(*asked).out
    assert "held for a person, needs 3 approvals (1 of finance, 1 of sec\\u001b)" in out


def test_an_action_is_shown_with_the_values_that_policy_decides_by(gatectl: Gatectl) -> None:
    assert re.search(r"decided by +/amount_cents, /currency\n", gatectl.done("actions", "show", "payment_transfer").out)
    assert "decided by" not in gatectl.done("actions", "show", "text_digest").out


def standing(standing_id: str, origin: str) -> dict[str, Any]:
    return {
        "standing_id": standing_id, "action_id": "pay", "principal": "billing", "operator": "ann", "origin": origin,
        "created_at": "2026-11-01T00:00:00Z", "until": "2099-11-01T00:00:00Z", "calls": 1, "signature": "a.b.c",
    }  # fmt: skip


@pytest.mark.parametrize(("other", "ends"), [("gate/2", ["gate", "gate/2"]), ("gate", ["ann", "ann"])])
def test_a_list_names_ledgers_where_one_of_them_is_not_that_of_this_gateway(
    gatectl: Gatectl, other: str, ends: list[str]
) -> None:
    listed = {"standing": [standing("sta_1", "gate"), standing("sta_2", other)], "origin": "gate"}
    with scripted_gateway({"GET /v1/admin/standing": (200, listed)}) as server:
        ran = pointed_at(gatectl, server.url).done("approvals", "standing", "list")
    title, *rows = [line.split() for line in ran.out.splitlines()]
    assert (title[-1] == "LEDGER") == (other != "gate")
    assert [row[-1] for row in rows] == ends


CAPS = "GET /v1/admin/policy/caps"


def cap(action_id: str, *used: tuple[str | None, str, str], **more: Any) -> dict[str, Any]:
    shown = [{"subject": subject, "total": total, "unknown": unknown} for subject, total, unknown in used]
    rest = {"pointer": "/amount", "per": "principal", "window_seconds": 60, "deny_above": 500, "used": shown}
    return {"action_id": action_id, **rest, **more}


def page(following: str | None, *caps: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    return 200, {"caps": list(caps), "policy_version": "v1", "next": following}


def test_each_subject_has_a_row_and_those_that_used_most_come_first(gatectl: Gatectl) -> None:
    many = cap(
        "pay", ("a", "9", "0"), ("b\x1b", "10.5", "10.5"), ("c", "NaN", "x"), ("d", "1e9999999", "0"), used_next="d"
    )
    with scripted_gateway({CAPS: [page("pay", many), page(None, cap("send", hold_above=2.5))]}) as server:
        ran = pointed_at(gatectl, server.url).done("policy", "caps", "list")
    asked = [one.rpartition("caps")[2] for one in server.requests if "caps" in one]
    assert [line.split() for line in ran.out.splitlines()] == [
        ["ACTION", "VALUE", "PER", "WITHIN", "SUM", "IS", "SUBJECT", "USED", "UNKNOWN"],
        ["pay", "/amount", "principal", "60", "s", "denied", "above", "500", "d", "1e9999999", "0"],
        ["pay", "/amount", "principal", "60", "s", "denied", "above", "500", "b\\u001b", "10.5", "10.5"],
        ["pay", "/amount", "principal", "60", "s", "denied", "above", "500", "a", "9", "0"],
        ["pay", "/amount", "principal", "60", "s", "denied", "above", "500", "c", "NaN", "x"],
        ["send", "/amount", "principal", "60", "s", "held", "above", "2.5,", "denied", "above", "500", "-", "0", "0"],
    ]
    assert "has more subjects: gatectl policy caps list pay --used-after d" in ran.err
    assert asked == ["", "?after=pay"]


def test_pages_that_do_not_end_are_refused(gatectl: Gatectl) -> None:
    with scripted_gateway({CAPS: page("pay", cap("pay"))}) as server:
        ran = pointed_at(gatectl, server.url).here("policy", "caps", "list")
    assert (ran.code != 0, "the pages of caps do not end" in ran.err) == (True, True)


def test_subjects_behind_one_are_those_of_an_action(gatectl: Gatectl) -> None:
    assert gatectl.here("policy", "caps", "list", "--used-after", "c").code == 2
