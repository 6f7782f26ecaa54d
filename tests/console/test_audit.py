"""The console's audit search: events by their kept values."""

from pathlib import Path

from tests.console.test_hostile_gateway import STATUS, signed_in
from tests.support.browser import Browser
from tests.support.console_process import console, go
from tests.support.scripted_gateway import scripted_gateway

EVENT = {
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
