"""One call on one screen, identifiers by a part of them, and changes that say which gateway they are for."""

import re

import pytest
from gateway_client import ActionFailed, AgentClient, Denied, Executed, Held
from gateway_client.cli.arguments import ids
from gateway_client.cli.exits import Failure

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.scripted_gateway import scripted_gateway

PLAIN = {"principal": "p", "actions": ["a", "b"], "sinks": []}
STATUS = {
    "status": "ok", "version": "1", "uptime_seconds": 1, "actions_registered": 1, "draining": False,
    "in_flight_executions": 0, "dependencies": {}, "weakened": [],
}  # fmt: skip
FIRST = "apr_01a20a2b-6c1a-7106-9def-f0097e0b9646"
SECOND = "apr_01a20a2b-6c1b-7106-9def-f0097e0b9647"


def test_trace_receipt_and_approval_tell_the_same_story(gatectl: Gatectl, held: Held) -> None:
    done = gatectl.done("approvals", "approve", held.approval_id[-10:], "--yes", "--json").json
    told = {gatectl.done("why", one).out for one in (held.trace_id, done["receipt_id"], held.approval_id)}
    told |= {gatectl.done("why", one[-12:]).out for one in (held.trace_id, done["receipt_id"], held.approval_id)}
    (text,) = told
    for part in (
        "payment_transfer 1.0.0 · critical · allow", "pending_approval", "approved by dev", "rule hold_high_risk",
        "success", "verified", done["receipt_id"], held.approval_id, held.trace_id,
    ):  # fmt: skip
        assert part in text
    story = gatectl.done("why", held.trace_id, "--json").json
    assert [story["receipt"]["receipt_id"], story["approval"]["approval_id"]] == [done["receipt_id"], held.approval_id]
    assert held.approval_id in gatectl.done("approvals", "show", held.approval_id[:-4]).out
    listed = gatectl.done("approvals", "list").out
    assert re.search(f"{held.approval_id} .* verified {done['receipt_id']} ", listed)


def test_a_call_that_failed_says_what_its_worker_met(gatectl: Gatectl, agent: AgentClient) -> None:
    with pytest.raises(ActionFailed) as failed:
        agent.execute("spin", {"fuel": 10**12})
    text = gatectl.done("why", str(failed.value.trace_id)).out
    assert "failed with   action_execution_failed" in text
    assert re.search(r"worker +provider_failure: fuel limit of \d+ reached", text)


def test_a_denied_call_says_the_reason_and_that_nothing_ran(gatectl: Gatectl, agent: AgentClient) -> None:
    with pytest.raises(Denied) as denied:
        agent.execute("forbidden_export", {"table": "t"})
    text = gatectl.done("why", str(denied.value.trace_id)).out
    assert "denied for" in text
    assert "exports of tables are not allowed for any agent" in text
    assert re.search("receipt +none", text)


def test_the_kept_values_of_a_call_are_told_and_why_they_are_not_there(gatectl: Gatectl) -> None:
    event = {
        "event_id": "evt_1", "event_type": "ActionCall", "decision": "allow", "trace_id": "trc_1", "action_id": "pay",
        "timestamp": "2026-11-21T11:12:13.123Z", "principal": "p", "kept_state": "whole",
        "kept_values": {"/id": "in_7\x1b", "/amount": 5},
    }  # fmt: skip
    for changes, line in (({}, "/id=in_7\\u001b /amount=5"), ({"kept_state": "erased"}, "erased")):
        with scripted_gateway({"GET /v1/audit/events": (200, {"events": [event | changes], "count": 1})}) as server:
            assert re.search(f"kept +{re.escape(line)}\n", pointed_at(gatectl, server.url).done("why", "trc_1").out)


def test_unknown_facts_are_left_out(gatectl: Gatectl) -> None:
    for name in ("trc_00000000-0000-7000-8000-000000000000", "nothing-of-this"):
        ran = gatectl.here("why", name)
        assert (ran.code, "evidence_not_found" in ran.err) == (4, True)


def test_the_newest_receipt_is_listed_first_and_shown_without_an_id(gatectl: Gatectl, agent: AgentClient) -> None:
    done = agent.execute("text_digest", {"text": "x"})
    assert isinstance(done, Executed)
    listed = gatectl.done("receipts", "list", "--json").json
    assert listed["receipts"][0]["receipt_id"] == done.receipt_id
    assert f" {done.receipt_id} " in gatectl.done("receipts").out.splitlines()[1]
    shown = gatectl.done("receipts", "show", "--verify").out
    assert shown.startswith(done.receipt_id)
    assert re.search("signature +verified\n", shown)


@pytest.mark.parametrize(
    ("given", "meant"),
    [(FIRST, FIRST), ("9646", FIRST), ("…9646", FIRST), ("apr_…0b9647", SECOND), ("01a20a2b-6c1b", SECOND),
     ("apr_01a20a2b-6c1a", FIRST), ("46", "46"), ("apr_", "apr_"), ("apr_1", "apr_1"), ("unknown", "unknown")],
)  # fmt: skip
def test_an_end_that_only_one_has_names_it(given: str, meant: str) -> None:
    assert ids.named(given, lambda: [FIRST, SECOND], "approvals") == meant


@pytest.mark.parametrize("given", ["01a20a2b", "apr_01a2"])
def test_an_end_that_several_have_names_nothing(given: str) -> None:
    with pytest.raises(Failure, match="usage"):
        ids.named(given, lambda: [FIRST, SECOND], "approvals")


def test_a_part_names_no_approval_where_not_all_are_seen(gatectl: Gatectl) -> None:
    item = {"approval_id": FIRST, "action_id": "a", "state": "pending"}
    with scripted_gateway({"GET /v1/approvals": (200, {"approvals": [item], "count": 1, "total": 2})}) as server:
        ran = pointed_at(gatectl, server.url).here("approvals", "approve", "9646", "--yes")
    assert (ran.code, "whole identifier" in ran.err) == (2, True)


def test_all_that_a_principal_may_is_taken_at_once(gatectl: Gatectl) -> None:
    gatectl.done("policy", "grant", "bob", "text_digest", "spin")
    ran = gatectl.done("policy", "revoke", "bob", "--all")
    assert "text_digest" not in ran.out
    assert not ran.err
    assert gatectl.here("policy", "show", "bob").code == 4
    for wrong in (["bob"], ["bob", "spin", "--all"]):
        assert gatectl.here("policy", "revoke", *wrong).code == 2


@pytest.mark.parametrize(
    ("weakened", "yes", "answer", "code"),
    [([], [], "n\r", 1), ([], [], "y\r", 0), ([], ["--yes"], "", 0), (["dev_mode"], [], "", 0)],
    ids=["a no", "a yes", "--yes", "a dev gateway"],
)
def test_a_change_is_asked_about_on_a_terminal_unless_it_is_for_a_dev_gateway(
    gatectl: Gatectl, weakened: list[str], yes: list[str], answer: str, code: int
) -> None:
    answers = {
        "GET /v1/admin/status": (200, STATUS | {"weakened": weakened}), "POST /v1/admin/policy/grant": (200, PLAIN),
    }  # fmt: skip
    with scripted_gateway(answers) as server:
        there = pointed_at(gatectl, server.url)
        ran = there.on_terminal("policy", "grant", "p", "a", *yes, answer=answer, until="[y/N]")
    assert f"for {server.url} (environment)" in ran.out
    assert (ran.code, "[y/N]" in ran.out) == (code, bool(answer))


def test_a_refused_reload_says_every_problem(gatectl: Gatectl) -> None:
    event = {
        "event_id": "e", "event_type": "AdminReload", "timestamp": "2026-11-21T15:52:36.811Z",
        "reason": "a.yaml:3  fuel: must be 1 or more. Name a number; 5 is one.; b.yaml:9  no such module\x1b[2J",
    }  # fmt: skip
    answers = {
        "POST /v1/admin/reload": (500, {"error": "reload_failed"}),
        "GET /v1/audit/events": (200, {"events": [event], "count": 1}),
    }
    with scripted_gateway(answers) as server:
        ran = pointed_at(gatectl, server.url).here("reload")
        as_json = pointed_at(gatectl, server.url).here("reload", "--json")
    assert ran.code == 1
    assert "a.yaml:3  fuel: must be 1 or more. Name a number; 5 is one.\n" in ran.err
    assert "b.yaml:9  no such module\\u001b[2J\n" in ran.err
    assert as_json.error["error"] == "reload_failed"
    assert "the event ends here" not in ran.err
    event["reason"] = event["reason"].ljust(500, "x")
    with scripted_gateway(answers) as server:
        assert "the event ends here: the gateway's log" in pointed_at(gatectl, server.url).here("reload").err
