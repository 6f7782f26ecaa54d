"""The console's first page: counts as a plot for the eye, in words for the keyboard, and as a table."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.console.test_hostile_gateway import STATUS, signed_in
from tests.support.browser import Browser
from tests.support.console_process import Console, console, go
from tests.support.scripted_gateway import scripted_gateway

FIRST = "document.querySelector('.plot svg.frame')"


def counts(**given: int) -> dict[str, int]:
    return {"allow": 0, "deny": 0, "pending_approval": 0, "error": 0} | given


SUMMARY: dict[str, Any] = {
    "step": "day", "complete": True,
    "buckets": [
        {"start": f"2026-11-{day:02}T00:00:00.000Z",
         "counts": counts(allow=40 - day, deny=day % 5, pending_approval=day % 3, error=day % 2)}
        for day in range(1, 31)
    ],
    "actions": [{"action_id": "refund_create", "count": 312}, {"action_id": "invoice_list", "count": 120},
                {"action_id": None, "count": 7}],
    "principals": [{"principal": "billing-agent", "count": 400}, {"principal": "support-agent", "count": 39}],
    "sums": [{"action_id": "refund_create", "pointer": "/amount", "sum": "1240.50"}],
}  # fmt: skip
HELD = {
    "approval_id": "apr_1", "action_id": "refund_create", "principal": "billing-agent", "risk_level": "high",
    "state": "pending", "expires_at": "2999-01-01T00:00:00.000Z", "summary": "120.00 EUR for inv_77",
    "created_at": "2026-11-20T00:00:00.000Z",
    "approvals": {"given": 1, "needed": 2, "groups": {"finance": 1}, "by": [{"approved_by": "ada"}]},
}  # fmt: skip
ANSWERS: dict[str, Any] = {
    "GET /v1/admin/status": (200, STATUS | {"status": "ok", "crash_loops": [], "weakened": []}),
    "GET /v1/approvals": (200, {"approvals": [HELD], "count": 1, "total": 1}),
    "GET /v1/audit/summary": (200, SUMMARY),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with (
        scripted_gateway(ANSWERS) as script,
        console(tmp_path_factory.mktemp("console"), "--gateway", script.url) as running,
    ):
        yield running


def pressed(page: Browser, key: str) -> None:
    event = f"new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true, cancelable: true }})"
    page.run(f"{FIRST}.dispatchEvent({event})")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_first_page_tells_what_was_called_at_every_width(page: Browser, served: Console, width: int) -> None:
    page.resize(width, 844)
    signed_in(page, served)
    go(page, "overview", "refund_create")
    for text in ("735 allowed", "120.00 EUR for inv_77", "billing-agent", "others", "1240.50"):
        page.sees(text)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("document.querySelectorAll('.plot pattern').length") == 8


def test_held_calls_say_how_many_approvals_are_given_and_by_whom(page: Browser, served: Console) -> None:
    signed_in(page, served)
    for view in ("overview", "held"):
        go(page, view, "1 of 2 approvals (1 of finance) · ada")


def test_the_keyboard_goes_from_bar_to_bar_and_each_is_told_in_words(page: Browser, served: Console) -> None:
    signed_in(page, served)
    go(page, "overview", "The arrow keys go from bar to bar.")
    assert page.run(f"{FIRST}.focus(), document.activeElement === {FIRST}")
    for key, told in (
        ("Home", "39 allowed, 1 held, 1 denied, 1 failed"), ("ArrowRight", "38 allowed, 2 held, 2 denied, 0 failed"),
        ("End", "10 allowed, 0 held, 0 denied, 0 failed"), ("ArrowLeft", "11 allowed, 2 held, 4 denied, 1 failed"),
    ):  # fmt: skip
        pressed(page, key)
        page.sees(told)


def test_the_numbers_of_the_plot_stand_in_a_table(page: Browser, served: Console) -> None:
    signed_in(page, served)
    go(page, "overview", "As a table")
    rows = page.run("[...document.querySelectorAll('.plot tbody tr')].map((row) => row.children[1].textContent)")
    assert rows == [str(40 - day) for day in range(1, 31)]
