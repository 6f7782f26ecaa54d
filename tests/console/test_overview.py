"""The console's first page: counts as a plot for the eye, in words for the keyboard, and as a table."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.console.test_hostile_gateway import STATUS, signed_in
from tests.support.browser import Browser
from tests.support.console_process import Console, console, go
from tests.support.scripted_gateway import ScriptedGateway, scripted_gateway

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
PAID = {"action_id": "refund_create", "pointer": "/amount", "window_seconds": 86_400}
LONG = "x" * 128
CAPS = [
    PAID
    | {
        "per": "principal",
        "hold_above": 500,
        "deny_above": 1000,
        "used": [
            {"subject": "support-agent", "total": "12.5", "unknown": "0"},
            {"subject": "billing-agent", "total": "950", "unknown": "40"},
            {"subject": LONG, "total": "123456789.000000001", "unknown": "0"},
        ],
    },
    PAID
    | {
        "per": "all",
        "window_seconds": 90,
        "hold_above": 5000,
        "used": [{"subject": None, "total": "962.5", "unknown": "0"}],
    },
]
THRESHOLDS = [
    {"action_id": "refund_create", "pointer": "/currency", "deny_unless_in": ["EUR", "USD"]},
    {"action_id": "refund_create", "pointer": "/amount", "hold_above": 100},
]
ANSWERS: dict[str, Any] = {
    "GET /v1/admin/policy": (200, {"policy_version": "7", "principals": {}}),
    "GET /v1/admin/standing": (200, {"standing": []}),
    "GET /v1/admin/policy/caps": (200, {"caps": CAPS, "policy_version": "7", "next": None}),
    "GET /v1/admin/policy/thresholds": (200, {"thresholds": THRESHOLDS, "policy_version": "7"}),
    "GET /v1/admin/status": (200, STATUS | {"status": "ok", "crash_loops": [], "weakened": []}),
    "GET /v1/approvals": (200, {"approvals": [HELD], "count": 1, "total": 1}),
    "GET /v1/audit/summary": (200, SUMMARY),
}


@pytest.fixture(scope="module")
def script() -> Iterator[ScriptedGateway]:
    with scripted_gateway(ANSWERS) as running:
        yield running


@pytest.fixture(scope="module")
def served(script: ScriptedGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(tmp_path_factory.mktemp("console"), "--gateway", script.url) as running:
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


def test_the_use_of_caps_is_told_in_words_the_fullest_first_and_by_bars(page: Browser, served: Console) -> None:
    page.resize(390, 844)
    signed_in(page, served)
    go(page, "overview", "Use of caps")
    assert page.run("document.documentElement.scrollWidth") <= 390
    page.sees("123456789.000000001 of 1000 in 1 d")
    page.sees("950 of 1000 in 1 d, 40 of it in calls whose outcome is unknown")
    table = "[...document.querySelectorAll('h2')].find((one) => one.textContent === 'Use of caps').parentElement"
    cells = f"[...{table}.querySelectorAll('tbody tr')].map((row) => [row.children[0].textContent.split(' · ')[1]"
    assert page.run(f"{cells}, row.querySelector('rect').getAttribute('width')])") == [
        [LONG, "100%"], ["billing-agent", "95%"], ["all together", "19%"], ["support-agent", "1%"],
    ]  # fmt: skip
    page.sees("962.5 of 5000 in 90 s")


def test_the_rest_of_the_page_is_there_while_sums_of_caps_can_not_be_read(
    page: Browser, served: Console, script: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = ANSWERS | {"GET /v1/admin/policy/caps": (503, {"error": "budget_store_unavailable"})}
    monkeypatch.setattr(script, "answers", without)
    signed_in(page, served)
    go(page, "overview", "503 budget_store_unavailable")
    page.sees("735 allowed")


def test_thresholds_and_caps_stand_on_the_page_of_the_policy_to_be_read(page: Browser, served: Console) -> None:
    page.resize(390, 844)
    signed_in(page, served)
    go(page, "policy", "Thresholds")
    for text in ("refund_create /currency", "denied unless in EUR, USD", "held above 500, denied above 1000", "90 s"):
        page.sees(text)
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.run("document.querySelectorAll('main form, main button').length") == 0


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
