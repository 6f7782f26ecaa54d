"""`policy caps list`: what has been used of each cap, page by page."""

from typing import Any

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.scripted_gateway import scripted_gateway

CAPS = "GET /v1/admin/policy/caps"


def cap(action_id: str, *used: tuple[str | None, str, str], **more: Any) -> dict[str, Any]:
    shown = [{"subject": subject, "total": total, "unknown": unknown} for subject, total, unknown in used]
    rest = {"pointer": "/amount", "per": "principal", "window_seconds": 60, "deny_above": 500, "used": shown}
    return {"action_id": action_id, **rest, **more}


def page(following: str | None, *caps: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    return 200, {"caps": list(caps), "policy_version": "v1", "next": following}


def test_each_subject_has_a_row_and_those_that_used_most_come_first(gatectl: Gatectl) -> None:
    many = cap("pay", ("a", "9", "0"), ("b\x1b", "10.5", "10.5"), ("c", "NaN", "x"), used_next="c")
    with scripted_gateway({CAPS: [page("pay", many), page(None, cap("send", hold_above=2.5))]}) as server:
        ran = pointed_at(gatectl, server.url).done("policy", "caps", "list")
    asked = [one.rpartition("caps")[2] for one in server.requests if "caps" in one]
    assert [line.split() for line in ran.out.splitlines()] == [
        ["ACTION", "VALUE", "PER", "WITHIN", "SUM", "IS", "SUBJECT", "USED", "UNKNOWN"],
        ["pay", "/amount", "principal", "60", "s", "denied", "above", "500", "b\\u001b", "10.5", "10.5"],
        ["pay", "/amount", "principal", "60", "s", "denied", "above", "500", "a", "9", "0"],
        ["pay", "/amount", "principal", "60", "s", "denied", "above", "500", "c", "NaN", "x"],
        ["send", "/amount", "principal", "60", "s", "held", "above", "2.5,", "denied", "above", "500", "-", "0", "0"],
    ]
    assert "has more subjects: gatectl policy caps list pay --used-after c" in ran.err
    assert asked == ["", "?after=pay"]


def test_pages_that_do_not_end_are_refused(gatectl: Gatectl) -> None:
    with scripted_gateway({CAPS: page("pay", cap("pay"))}) as server:
        ran = pointed_at(gatectl, server.url).here("policy", "caps", "list")
    assert (ran.code != 0, "the pages of caps do not end" in ran.err) == (True, True)


def test_subjects_behind_one_are_those_of_an_action(gatectl: Gatectl) -> None:
    assert gatectl.here("policy", "caps", "list", "--used-after", "c").code == 2
