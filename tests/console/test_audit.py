"""The console's audit search: events by their kept values."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.console.test_hostile_gateway import STATUS, signed_in
from tests.support.browser import Browser
from tests.support.console_process import console, go
from tests.support.scripted_gateway import scripted_gateway

EVENT: dict[str, Any] = {
    "event_id": "evt_1", "event_type": "ActionCall", "timestamp": "2026-11-21T11:12:13.123Z", "decision": "allow",
    "principal": "billing-agent", "action_id": "refund_create", "trace_id": "trc_1", "prev_hash": None,
}  # fmt: skip
WHOLE = EVENT | {"kept_state": "whole", "kept_values": {"/invoice_id": "in_7", "/amount_cents": 12000}}
ERASED = EVENT | {"event_id": "evt_2", "kept_state": "erased", "kept_values": {"/invoice_id": None}}
ANSWERS = {
    "GET /v1/admin/status": (200, STATUS | {"status": "ok", "crash_loops": [], "weakened": []}),
    "GET /v1/audit/events": (200, {"events": [WHOLE, ERASED], "count": 2}),
}


def test_events_are_searched_for_by_a_kept_value_and_shown_with_theirs(page: Browser, tmp_path: Path) -> None:
    with scripted_gateway(ANSWERS) as script, console(tmp_path, "--gateway", script.url) as running:
        signed_in(page, running)
        go(page, "audit?kept=/invoice_id=in_7", "/invoice_id=in_7 /amount_cents=12000")
        page.sees("kept values erased")
        assert page.run("document.documentElement.scrollWidth") <= page.run("window.innerWidth")
        assert [one for one in script.requests if "kept.%2Finvoice_id=in_7" in one]


@contextmanager
def audit_of(page: Browser, folder: Path, events: list[dict[str, Any]], most: int = 1000) -> Iterator[None]:
    """The list of these events, newest first, of a gateway that shows so many at most in one answer."""

    def answer(query: dict[str, str]) -> tuple[int, Any]:
        found = [one for one in events if one["timestamp"] < query.get("before", "9")][: min(int(query["limit"]), most)]
        return 200, {"events": found, "count": len(found)}

    with (
        scripted_gateway(ANSWERS | {"GET /v1/audit/events": answer}) as script,
        console(folder, "--gateway", script.url) as running,
    ):
        signed_in(page, running)
        go(page, "audit", "50 events")
        yield


@pytest.mark.parametrize("event", [EVENT, WHOLE], ids=["without kept values", "with some"])
def test_a_page_that_large_events_end_early_is_not_taken_for_the_last_one(
    page: Browser, tmp_path: Path, event: dict[str, Any]
) -> None:
    events = [
        event | {"event_id": f"evt_{number}", "timestamp": f"2026-11-21T11:12:13.{min(number, 60):03}Z"}
        for number in reversed(range(120))
    ]  # 60 of one millisecond: the console asks for the longest page then

    with audit_of(page, tmp_path, events, most=100):
        for count in (100, 120):
            page.click("button", "Older ones")
            page.sees(f"{count} events")


def test_events_of_one_millisecond_at_the_end_of_a_page_are_all_shown(page: Browser, tmp_path: Path) -> None:
    events = [
        EVENT | {"event_id": f"evt_{number}", "timestamp": f"2026-11-21T11:12:13.{number // 60:03}Z"}
        for number in reversed(range(150))
    ]

    with audit_of(page, tmp_path, events):
        for count in (80, 150):
            page.click("button", "Older ones")
            page.sees(f"{count} events")
        shown = page.run("[...document.querySelectorAll('.event')].map((one) => one.dataset.id)")
    assert shown == [one["event_id"] for one in events]
