"""The page before a gateway, or a proxy in between, that answers as no real gateway does; and its own sources."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from gateway_client.visible import visible

from console.assets import load_page
from tests.support.browser import Browser
from tests.support.console_process import Console, console, go
from tests.support.gateway import wait_for
from tests.support.ports import free_port
from tests.support.scripted_gateway import ScriptedGateway, scripted_gateway

PAGE = Path(__file__).resolve().parents[2] / "console" / "page"
EVIL = "</dd><img src=x onerror=hacked()><script>hacked()</script>\u202e\u0000" + "x" * 300
EVIL_TOOL = {"name": EVIL, "digest": EVIL}
DETAIL = {
    "approval_id": "apr_1", "summary": EVIL,
    "action_id": EVIL, "action_version": EVIL, "state": "pending", "status": "pending",
    "principal": EVIL, "session_id": EVIL, "owner": EVIL, "risk_level": EVIL, "request_hash": EVIL, "created_at": EVIL,
    "expires_at": "2999-01-01T00:00:00.000Z", "trace_id": EVIL, "request": {EVIL: EVIL}, "request_json": EVIL,
    "approved_targets": [EVIL], "approved_secrets": [EVIL], "secret_domains": {EVIL: [EVIL]},
    "secret_ways": {EVIL: EVIL},
    "approved_request": {"method": EVIL, "url": EVIL, "headers": [[EVIL, EVIL]], "body": EVIL, "tool": EVIL_TOOL},
    "approved_egress": {"profile": EVIL, "allowed_domains": [EVIL], "allowed_methods": [EVIL]},
    "approved_files": {EVIL: [EVIL]}, "unresolved_domains": [EVIL], "unresolved_paths": [EVIL], "sinks": [EVIL],
    "verifier_kind": EVIL, "provider_module_digest": EVIL, "resource_limits": {EVIL: EVIL}, "policy_version": EVIL,
    "policy_rule": EVIL, "budget_snapshot": {"calls_remaining": 1}, "revocation_epoch": 0, "plan_hash": EVIL,
    "shown_hash": "sha256:" + "0" * 64, "claimed_by": EVIL,
    "approvals": {"given": EVIL, "needed": EVIL, "groups": {EVIL: EVIL}, "by": [{"approved_by": EVIL}]},
}  # fmt: skip
EVENT = dict.fromkeys(
    ("event_id", "event_type", "timestamp", "principal", "action_id", "decision", "deny_reason", "kept_state"), EVIL
) | {"kept_values": {EVIL: EVIL}}
CHECKPOINT = {
    "origin": EVIL, "size": 1, "root": EVIL, "time": EVIL, "age_seconds": 1,
    "witnesses": [{"name": EVIL, "has_cosigned": False, "problem": EVIL}],
}  # fmt: skip
STATUS: dict[str, Any] = {
    "status": EVIL, "pending_approvals": 1, "in_flight_executions": 0, "unresolved_intents": 1, "weakened": [EVIL],
    "crash_loops": [EVIL], "ledger_volume": {"is_full": True},
    "checkpoint": CHECKPOINT,
}  # fmt: skip
SESSION = dict.fromkeys(("session_id", "lease_jti", "principal", "owner", "identity_method", "issued_at"), EVIL) | {
    "expires_at": "2999-01-01T00:00:00.000Z", "uid": None, "max_calls": None, "pending_approvals": 0,
}  # fmt: skip
EXPLAINED = dict.fromkeys(
    ("principal", "action_id", "decision", "error_code", "rule", "reason", "policy_version", "request_hash"), EVIL
) | {"assumed": [EVIL]}
SUMMARY = {
    "step": EVIL, "buckets": [{"start": EVIL, "counts": {"allow": EVIL, "deny": -1, "error": 1e300}}], "complete": True,
    "actions": [{"action_id": EVIL, "count": EVIL}], "principals": [{"principal": EVIL, "count": -1}],
    "sums": [{"action_id": EVIL, "pointer": EVIL, "sum": EVIL}],
}  # fmt: skip
STANDING = dict.fromkeys(
    (
        "standing_id",
        "action_id",
        "principal",
        "operator",
        "created_at",
        "until",
        "max_calls",
        "calls",
        "signature",
        "origin",
    ),
    EVIL,
) | {"where": [{"pointer": EVIL, "op": EVIL, "value": [EVIL]}]}
USED = {"subject": EVIL, "total": EVIL, "unknown": EVIL}
CAP = {"action_id": EVIL, "pointer": EVIL, "per": EVIL, "window_seconds": EVIL, "hold_above": EVIL, "used": [USED]}
THRESHOLD = {"action_id": EVIL, "pointer": EVIL, "deny_above": EVIL, "deny_unless_in": [EVIL, {EVIL: EVIL}]}
ANSWERS: dict[str, Any] = {
    "GET /v1/admin/policy/caps": (200, {"caps": [CAP], "next": EVIL}),
    "GET /v1/admin/policy/thresholds": (200, {"thresholds": [THRESHOLD]}),
    "GET /v1/admin/status": (200, STATUS),
    "GET /v1/approvals": (200, {"approvals": [DETAIL], "count": 1, "total": 1}),
    "GET /v1/approvals/apr_1": (200, DETAIL),
    "GET /v1/audit/events": (200, {"events": [EVENT], "count": 1}),
    "GET /v1/audit/summary": (200, SUMMARY),
    "GET /v1/admin/sessions": (200, {"sessions": [SESSION], "count": 1, "next": None}),
    "POST /v1/admin/policy/explain": (200, EXPLAINED),
    "GET /v1/actions": (200, [{"action_id": EVIL, "version": EVIL, "risk_level": EVIL, "description": EVIL}]),
    "GET /v1/actions/a": (200, {"action_id": EVIL, "description": EVIL, EVIL: {EVIL: EVIL}}),
    "GET /v1/admin/policy": (200, {"policy_version": EVIL, "principals": {EVIL: {"actions": [EVIL], "sinks": [EVIL]}}}),
    "GET /v1/admin/standing": (200, {"standing": [STANDING], "origin": "other"}),
    "GET /v1/admin/policy/a": (403, {"error": EVIL, "reason": EVIL}),
}
STATE_IS_TOLD = "document.getElementById('state').childElementCount > 0"
VIEWS = (
    "overview", "held", "held/apr_1", "decisions", "audit", "call/trc_1", "actions", "actions/a", "policy", "policy/a",
    "sessions", "explain?principal=a&action_id=b", "key",
)  # fmt: skip


@pytest.fixture(scope="module")
def script() -> Iterator[ScriptedGateway]:
    with scripted_gateway(ANSWERS) as running:
        yield running


@pytest.fixture(scope="module")
def served(script: ScriptedGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(tmp_path_factory.mktemp("console"), "--gateway", script.url) as running:
        yield running


def signed_in(page: Browser, one: Console) -> None:
    page.open(one.origin)
    if page.run("import('/keys.js').then(({ gateways }) => gateways()).then((found) => found.length)") == 0:
        page.write("Operator's name", "eve")
        page.press("Enter")
        page.click("button", "Done")
    page.write("API key", f"key-eve-{'0' * 32}")
    page.press("Enter")
    page.find("button", "Lock")
    wait_for(lambda: page.run(STATE_IS_TOLD), "the line above the views, which moves all that is below it")


def test_whatever_stands_in_any_field_is_text(page: Browser, served: Console) -> None:
    signed_in(page, served)
    for view in VIEWS:
        page.resize(390, 844)
        go(page, view, "onerror=hacked()" if view != "key" else "dpop_jkt")
        page.run("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.run("document.querySelectorAll('main img, main script, header img').length") == 0
        assert page.run("/[\\u202e\\u0000]/.test(document.documentElement.textContent)") is False
        assert page.run("document.documentElement.scrollWidth") <= 390, view


def test_what_does_not_hash_to_what_is_shown_is_not_signed(
    page: Browser, served: Console, script: ScriptedGateway
) -> None:
    signed_in(page, served)
    go(page, "held/apr_1", "Not signed: what is shown does not hash to its shown_hash")
    assert [name for role, name, _ in page.nodes() if role == "button" and name.startswith(("Approve", "Deny"))] == []
    tried = "import('/api.js').then((api) => api.get('/v1/approvals/apr_1').then((one) => api.decide(one, 'approve')))"
    assert page.run(f"{tried}.then(() => 'signed', (error) => error.code)") == "shown_mismatch"
    assert not [one for one in script.requests if one.startswith("POST /v1/approvals")]


@pytest.mark.parametrize("first", ["pending", "claimed"])
def test_a_call_that_is_being_decided_is_followed_to_its_end(
    page: Browser, served: Console, script: ScriptedGateway, first: str
) -> None:
    def in_state(state: str, **more: str) -> tuple[int, Any]:
        return 200, DETAIL | {"approval_id": "apr_2", "state": state, "claimed_by": "ben"} | more

    path = "GET /v1/approvals/apr_2"
    script.answers[path] = in_state(first)
    signed_in(page, served)
    go(page, "held/apr_2", "Canonical request")
    script.answers[path] = in_state("claimed")
    page.run("document.dispatchEvent(new Event('visibilitychange'))")
    page.sees("decided by")
    script.answers[path] = in_state("approved", receipt_id="rcpt_of_ben")
    page.run("document.dispatchEvent(new Event('visibilitychange'))")
    page.sees("rcpt_of_ben")
    asked = script.requests.count(f"{path}")
    page.run("document.dispatchEvent(new Event('visibilitychange'))")
    assert script.requests.count(path) == asked


def test_a_decision_whose_answer_is_lost_may_have_arrived_and_the_page_says_so(
    page: Browser, served: Console, script: ScriptedGateway
) -> None:
    changing = {"state", "status", "claimed_by", "approvals", "shown_hash"}
    detail: dict[str, Any] = DETAIL | {"approval_id": "apr_3", "unresolved_domains": [], "unresolved_paths": []}
    shown = rfc8785.dumps({name: value for name, value in detail.items() if name not in changing})
    detail["shown_hash"] = f"sha256:{hashlib.sha256(shown).hexdigest()}"
    script.answers["GET /v1/approvals/apr_3"] = (200, detail)
    script.answers["POST /v1/approvals/apr_3/approve"] = (200, '{"trace_id":')
    signed_in(page, served)
    go(page, "held/apr_3", "Canonical request")
    page.click("button", "Approve")
    page.click("button", "Sign and approve")
    page.sees("The decision may have arrived all the same: this page goes on looking.")
    script.answers["POST /v1/approvals/apr_3/approve"] = (409, {"error": "plan_integrity"})
    page.click("button", "Approve")
    page.click("button", "Sign and approve")
    page.sees("plan_integrity")
    assert "may have arrived" not in page.text()


def test_a_log_that_is_shorter_than_it_was_is_said(page: Browser, served: Console, script: ScriptedGateway) -> None:
    def reporting(size: int) -> tuple[int, Any]:
        return 200, STATUS | {"checkpoint": CHECKPOINT | {"size": size}}

    script.answers["GET /v1/admin/status"] = reporting(5)
    signed_in(page, served)
    page.sees("5 entries")
    assert "shorter" not in page.text()
    script.answers["GET /v1/admin/status"] = reporting(4)
    page.run("document.dispatchEvent(new Event('visibilitychange'))")  # as when the user comes back to the tab
    page.sees("log is shorter than it was")


def test_a_console_that_speaks_for_another_gateway_finds_no_key(
    page: Browser, script: ScriptedGateway, tmp_path: Path
) -> None:
    listen = f"127.0.0.1:{free_port()}"  # a port that the kernel gives to no connection
    with console(tmp_path, "--gateway", script.url, listen=listen) as one:
        signed_in(page, one)
        assert one.stop() == 0
    with console(
        tmp_path, "--gateway", script.url, "--public-base-url", "https://another.example", listen=listen
    ) as one:
        page.open(one.origin)
        page.sees(f"This browser has a key here for {script.url}. This console speaks for https://another.example.")


TEXTS = (
    "plain", "tab\tnew\nline", "\u202egpj", "zero\u200bwidth", "soft\u00adhyphen", "nbsp\u00a0", "wide\u3000", "\u2800",
    "\u115f", "\ufe0f", "e\u0301", "e" + "\u0301" * 6, "\u0301alone", "שלום", "שלום abc", "abc 12 عدد", "日本語", "é",
    "\ud800", "\U000e0041", "\ue000", "\U0001f600", "a\\u202e", "", "\u0378",
    "1\u03360", "=\u0338", "a\u20dd", "a\u20e5", "a\u0489", "a\u1dfb", "a\u1ce4", "\U00010a00\U00010a39",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, {}, [], {"b": [1, 2.5, -0.0, 1e-7, 9007199254740991], "a": {"é": "\u202e\n\"\\", "€": "😀"}},
    {"\U0001f600": 1, "\ufb33": 2, "1": 3, "10": 4, "2": 5, "__proto__": {"x": 1}},
)  # fmt: skip


def test_texts_are_made_visible_as_gatectl_does_and_values_canonical_as_the_gateway_does(
    page: Browser, served: Console
) -> None:
    page.open("about:blank")
    modules = {name: (PAGE / name).read_text() for name in ("visible.js", "canonical.js")}
    loaded = {name: f"import('data:text/javascript,' + encodeURIComponent({json.dumps(text)}))"
              for name, text in modules.items()}  # fmt: skip
    shown = page.run(f"{loaded['visible.js']}.then((m) => {json.dumps(TEXTS)}.map(m.visible))")
    assert shown == [visible(text) for text in TEXTS]
    values = json.dumps([json.dumps(value) for value in VALUES])
    canonical = page.run(f"{loaded['canonical.js']}.then((m) => {values}.map((one) => m.canonical(JSON.parse(one))))")
    assert canonical == [rfc8785.dumps(value).decode() for value in VALUES]
    for form_less in ("9007199254740993", "1e300", '"\\ud800"'):
        tried = f"{loaded['canonical.js']}.then((m) => m.canonical(JSON.parse({json.dumps(form_less)})))"
        assert page.run(f"{tried}.then(() => 'has one', () => 'has none')") == "has none"


SVG = "http://www.w3.org/2000/svg"
"""The name of a namespace, which no browser asks for."""
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|\beval\b|new Function|srcdoc"
    r"|setTimeout\(\s*[\"'`]|javascript:|localStorage|sessionStorage|document\.cookie|https?://|\bstyle="
)


def test_the_page_has_no_foreign_resource_no_inline_script_and_no_markup_from_texts() -> None:
    files = [file for file in sorted(PAGE.rglob("*")) if file.is_file()]
    assert len(files) > 15
    for file in files:
        text = file.read_text().replace(SVG, "")
        assert FORBIDDEN.findall(text) == [], file
        assert text.count("\n") <= 250, file
    markup = (PAGE / "index.html").read_text()
    assert re.findall(r"<script(?![^>]* src=)|\son\w+=|<style", markup) == []


def test_every_file_of_the_page_is_served_and_nothing_else() -> None:
    files = {f"/{file.relative_to(PAGE)}" for file in PAGE.rglob("*") if file.is_file()}
    assert set(load_page()) == files - {"/index.html"} | {"/"}
