"""An operator's view before a decision, the decision, and the message when another operator was first."""

import json
import time
from typing import Any
from urllib.parse import parse_qs

import pytest
from gateway_client import Held, OperatorClient, OperatorCredential, ProofKey
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.evidence.approval_signatures import hash_of_shown
from gateway_client.wire.decoding import decode

from tests.support.gatectl import INTERRUPT, Gatectl, pointed_at
from tests.support.gateway import Gateway
from tests.support.scripted_gateway import scripted_gateway
from tests.support.shown_approval import APPROVE, DENY, DETAIL, EXECUTED, GONE, SHOW


def in_order(text: str, *parts: str) -> None:
    """Fail unless the parts stand in the text, one behind the other."""
    at = -1
    for part in parts:
        assert part in text, part
        position = text.find(part, at + 1)
        assert position > at, f"{part} stands too early"
        at = position


def test_the_effect_is_shown_first_then_the_caller_then_the_hashes(gatectl: Gatectl, held: Held) -> None:
    out = gatectl.done("approvals", "show", held.approval_id).out
    in_order(
        out, "HELD  payment_transfer 1.0.0 · critical · expires in 4:",
        "action      Transfers an amount to an account.", "will send   POST http://upstream.gateway.test",
        'body        {"amount_cents":', '"to":"acct-7"', "secrets     bank_token", "asked by    dev:anonymous",
        "because     rule hold_high_risk", "plan        sha256:", "approval    apr_",
        "approve?  gatectl approvals approve apr_",
    )  # fmt: skip
    assert "\x1b" not in out


def test_the_description_that_was_held_is_shown_and_not_that_of_the_manifest(gatectl: Gatectl) -> None:
    with scripted_gateway({SHOW: (200, DETAIL | {"description": "Pays.\u202e"})}) as server:
        out = pointed_at(gatectl, server.url).done("approvals", "show", "apr_1").out
    in_order(out, "action      Pays.", "asked by")
    assert "\u202e" not in out
    assert "GET /v1/actions/http_fetch" not in server.requests


def test_lists_and_plans_name_a_call_by_the_summary_of_its_kept_values(gatectl: Gatectl) -> None:
    one = DETAIL | {"summary": "120.00 EUR for inv_77\x1b"}
    page = {"approvals": [one, DETAIL | {"approval_id": "apr_2"}], "count": 2, "total": 2}
    with scripted_gateway({SHOW: (200, one), "GET /v1/approvals": (200, page)}) as server:
        there = pointed_at(gatectl, server.url)
        listed, shown = there.done("approvals").out, there.done("approvals", "show", "apr_1").out
    first, second = listed.splitlines()[1:]
    assert " http_fetch · 120.00 EUR for inv_77\\u001b " in first
    assert " http_fetch " in second
    in_order(shown, "summary     120.00 EUR for inv_77\\u001b", "will send")


def test_a_call_without_a_network_or_file_target_is_shown_as_one(gatectl: Gatectl) -> None:
    detail = DETAIL | {"approved_request": None, "approved_targets": []}
    with scripted_gateway({SHOW: [(200, detail), (200, DETAIL | {"approved_targets": []})]}) as server:
        there = pointed_at(gatectl, server.url)
        plans = [there.done("approvals", "show", "apr_1").out for _ in range(2)]
    told = "will run    the action, without a network or file target"
    assert [told in plan for plan in plans] == [True, False]


def test_the_tool_that_will_be_called_is_shown_with_its_digest(gatectl: Gatectl) -> None:
    tool = {"name": "read_file", "digest": "sha256:44"}
    detail = DETAIL | {"approved_request": DETAIL["approved_request"] | {"tool": tool}}
    with scripted_gateway({SHOW: (200, detail)}) as server:
        out = pointed_at(gatectl, server.url).done("approvals", "show", "apr_1").out
    in_order(out, "will send   GET", "calls tool  read_file, pinned as sha256:44")


def test_the_parts_of_the_answer_that_the_agent_will_get_are_shown(gatectl: Gatectl) -> None:
    response = {"headers": ["x-total\x1b"], "pick": {"account": "/account/iban\u202e"}}
    detail = DETAIL | {"approved_request": DETAIL["approved_request"] | {"response": response}}
    with scripted_gateway({SHOW: (200, detail)}) as server:
        out = pointed_at(gatectl, server.url).done("approvals", "show", "apr_1").out
    in_order(out, "will send   GET", "answer      header x-total\\u001b", "answer      account: /account/iban\\u202e")


def test_new_domains_and_paths_are_shown_with_what_approving_would_add(gatectl: Gatectl) -> None:
    detail = DETAIL | {"unresolved_paths": ["reports/x\u202e.txt"]}
    with scripted_gateway({SHOW: (200, detail)}) as server:
        out = pointed_at(gatectl, server.url).done("approvals", "show", "apr_1").out
    assert "bank.example is not in this action's allow-list: approving with --learn-domain bank.example adds it" in out
    assert "approving with --learn-path reports/x\\u202e.txt adds it" in out
    assert "billing-agent (owner team-billing), session ses_1, 7 calls left" in out


def test_the_input_is_shown_exactly_and_what_the_call_may_reach_and_is_held_to(gatectl: Gatectl) -> None:
    detail = DETAIL | {
        "request": {"note\\u0001": "a\u0301", "note\\\\u0001": "b"},
        "request_json": '{"note\\u0001":"a\\u0301","note\\\\u0001":"b"}',
        "approved_egress": {"profile": "direct_allowlist", "private_networks": ["core"],
                            "allowed_domains": ["bank.example"],
                            "allowed_methods": ["GET", "POST"]},
        "approved_files": {"allowed_operations": ["write"], "allowed_paths": ["reports/*"], "denied_paths": [],
                           "max_file_bytes": 1000},
        "resource_limits": {"fuel": 5, "timeout_seconds": 30}, "verifier_kind": "http_status",
    }  # fmt: skip
    with scripted_gateway({SHOW: (200, detail)}) as server:
        out = pointed_at(gatectl, server.url).done("approvals", "show", "apr_1").out
    in_order(
        out, r'input       {"note\u0001":"a\u0301","note\\u0001":"b"}', "reads       {", 'a\u0301"',
        "may reach   bank.example by GET, POST (direct_allowlist)", "files       allowed operations: write",
        "files       allowed paths: reports/*", "limits      fuel 5, timeout seconds 30", "verified by http_status",
    )  # fmt: skip


def test_nothing_is_cut_without_a_word(gatectl: Gatectl) -> None:
    detail = DETAIL | {"request": {"text": "a" * 100_000 + "THE END"}}
    with scripted_gateway({SHOW: (200, detail), APPROVE: (200, EXECUTED)}) as server:
        there = pointed_at(gatectl, server.url)
        out = there.done("approvals", "show", "apr_1").out
        full = there.done("approvals", "show", "apr_1", "--full").out
        asked = there.on_terminal("approvals", "approve", "apr_1", answer="n\n", until="[y/N]")
    assert "THE END" not in out
    assert "NOT ALL     is shown. The whole plan: gatectl approvals show apr_1 --full" in out
    assert "characters more)" in out
    assert "THE END" in full
    assert "NOT ALL OF IT IS SHOWN ABOVE. approve http_fetch?" in asked.out
    assert asked.code == 1
    assert not [one for one in server.requests if one.startswith("POST")]


def test_approving_on_a_terminal_shows_the_plan_and_asks_once(gatectl: Gatectl, held: Held) -> None:
    ran = gatectl.on_terminal("approvals", "approve", held.approval_id, answer="y\n", until="[y/N]")
    assert ran.code == 0, ran.out
    in_order(
        ran.out,
        "will send",
        "plan\n      sha256:",
        "approval    apr_",
        "approve payment_transfer? [y/N]",
        "executed  payment_transfer",
    )
    assert ran.out.count("[y/N]") == 1


def test_without_a_terminal_only_yes_is_a_yes(gatectl: Gatectl, held: Held, gate: Gateway) -> None:
    ran = gatectl.here("approvals", "approve", held.approval_id)
    assert ran.code == 2
    assert ran.err == "gatectl: usage: this needs a yes, and there is no terminal to ask on - add --yes\n"
    credential = OperatorCredential.load(gate.state / "operator.key", gate.state / "operator.pem")
    with OperatorClient(gate.base, credential) as operator:
        assert operator.approval(held.approval_id).state == "pending"
    assert gatectl.done("approvals", "approve", held.approval_id, "--yes").out.count("verification verified") == 1


def test_the_second_operator_learns_who_decided_first(gatectl: Gatectl, held: Held) -> None:
    gatectl.done("approvals", "deny", held.approval_id)
    for verb in (["approve", "--yes"], ["deny"]):
        ran = gatectl.here("approvals", *verb, held.approval_id)
        assert ran.code == 4
        assert ran.err.startswith("gatectl: already_decided: already decided: denied by dev - ")


@pytest.mark.parametrize(
    ("afterwards", "message"),
    [
        (
            (200, DETAIL | {"state": "approved", "claimed_by": "ann"}),
            "already_decided: already decided: approved by ann",
        ),
        (GONE, "approval_not_found"),
        ((503, {"error": "approval_store_unavailable"}), "already_decided: already decided, or expired"),
    ],
)
def test_a_decision_by_another_operator_while_reading_is_reported(
    gatectl: Gatectl, afterwards: tuple[int, Any], message: str
) -> None:
    with scripted_gateway({SHOW: [(200, DETAIL), afterwards], APPROVE: GONE}) as server:
        ran = pointed_at(gatectl, server.url).here("approvals", "approve", "apr_1", "--yes")
    assert (ran.code, ran.err.removeprefix("gatectl: ").startswith(message)) == (4, True)


def test_another_plan_than_the_one_shown_is_an_alarm(gatectl: Gatectl) -> None:
    other = EXECUTED | {"approval": {"approval_id": "apr_1", "approval_hash": "sha256:99"}}
    with scripted_gateway({SHOW: (200, DETAIL), APPROVE: (200, other)}) as server:
        ran = pointed_at(gatectl, server.url).here("approvals", "approve", "apr_1", "--yes")
    assert (ran.code, "plan_mismatch" in ran.err) == (8, True)


def test_an_effect_that_was_not_confirmed_is_exit_8(gatectl: Gatectl) -> None:
    other = EXECUTED | {"verification_outcome": "verification_failed", "learn_error": "verification_failed"}
    with scripted_gateway({SHOW: (200, DETAIL), APPROVE: (200, other)}) as server:
        ran = pointed_at(gatectl, server.url).here("approvals", "approve", "apr_1", "--yes")
    assert (ran.code, "verification_failed: effect not confirmed" in ran.err) == (8, True)


def test_a_failed_lesson_is_reported_first(gatectl: Gatectl) -> None:
    other = EXECUTED | {"learn_error": "learned_rules_unavailable"}
    with scripted_gateway({SHOW: (200, DETAIL), APPROVE: (200, other)}) as server:
        there = pointed_at(gatectl, server.url)
        ran = there.here("approvals", "approve", "apr_1", "--yes", "--learn-domain", "bank.example")
    assert "warn  NOTHING WAS LEARNED: learned_rules_unavailable. The call itself ran.\nexecuted " in ran.out
    assert (ran.code, "not_learned" in ran.err) == (1, True)
    assert f"{APPROVE}?learn_domain=bank.example" in server.requests


@pytest.mark.parametrize(
    ("rule", "warns"),
    [(("--learn-domain", "bank.example"), False), (("--learn-domain", "*.example"), False),
     (("--learn-domain", "other.example"), True), (("--learn-path", "notes/**"), True)],
)  # fmt: skip
def test_a_rule_that_the_call_does_not_need_is_learned_with_a_warning(
    gatectl: Gatectl, rule: tuple[str, str], warns: bool
) -> None:
    waits = DETAIL | {"unresolved_domains": ["bank.example"], "unresolved_paths": []}
    with scripted_gateway({SHOW: (200, waits), APPROVE: (200, EXECUTED)}) as server:
        ran = pointed_at(gatectl, server.url).here("approvals", "approve", "apr_1", "--yes", *rule)
    assert (ran.code, "does not wait for" in ran.err) == (0, warns)


def jkt_of(gate: Gateway) -> str:
    return ProofKey.load(gate.state / "operator.pem").thumbprint


def test_every_decision_is_signed_and_says_by_which_key(gatectl: Gatectl, held: Held, gate: Gateway) -> None:
    shown = gatectl.done("approvals", "show", held.approval_id)
    detail = gatectl.done("approvals", "show", held.approval_id, "--json").json
    assert f"shown       {detail['shown_hash']}" in shown.out
    out = gatectl.done("approvals", "approve", held.approval_id, "--yes").out
    assert f"signed by {jkt_of(gate)}\n" in out
    told = gatectl.done("approvals", "show", held.approval_id, "--json").json
    assert told["approval_signature"].count(".") == 2
    assert "by the operator who decided" in gatectl.done("approvals", "show", held.approval_id).out


def test_a_denial_is_signed_too_and_json_stays_json(gatectl: Gatectl, held: Held, gate: Gateway) -> None:
    ran = gatectl.done("approvals", "deny", held.approval_id, "--reason", "no", "--json")
    assert ran.json["denied_by"] == "dev"
    assert f"signed by {jkt_of(gate)}\n" in ran.err
    event = gatectl.done("audit", "events", "--event-type", "ApprovalDenied", "--limit", "1", "--json").json
    assert (event["approval_id"], event["approval_signature"].count(".")) == (held.approval_id, 2)


def test_text_that_does_not_match_its_hash_is_neither_signed_nor_sent(gatectl: Gatectl) -> None:
    honest = DETAIL | {"shown_hash": hash_of_shown(decode(ApprovalDetail, DETAIL, "detail"))}
    spoilt = honest | {"request": {"path": "/harmless"}}
    answers = {SHOW: (200, spoilt), APPROVE: (200, EXECUTED), DENY: (200, {})}
    with scripted_gateway(answers) as server:
        there = pointed_at(gatectl, server.url)
        for verb in (("approve", "apr_1", "--yes"), ("deny", "apr_1")):
            ran = there.here("approvals", *verb)
            assert (ran.code, "shown_mismatch: not signed" in ran.err) == (8, True)
    assert not [one for one in server.requests if one.startswith("POST")]
    with scripted_gateway({SHOW: (200, honest), APPROVE: (200, EXECUTED)}) as server:
        assert "signed by " in pointed_at(gatectl, server.url).done("approvals", "approve", "apr_1", "--yes").out


def test_a_signed_call_that_ran_and_failed_says_by_whom_it_was_signed(gatectl: Gatectl) -> None:
    honest = DETAIL | {"shown_hash": hash_of_shown(decode(ApprovalDetail, DETAIL, "detail"))}
    with scripted_gateway({SHOW: (200, honest), APPROVE: (502, {"error": "action_execution_failed"})}) as server:
        ran = pointed_at(gatectl, server.url).here("approvals", "approve", "apr_1", "--yes")
    assert (ran.code, "signed by " in ran.out, "action_execution_failed" in ran.err) == (1, True, True)


def test_a_gateway_that_shows_no_hash_gets_a_decision_without_a_signature_and_that_is_said(gatectl: Gatectl) -> None:
    with scripted_gateway({SHOW: (200, DETAIL), APPROVE: (200, EXECUTED)}) as server:
        out = pointed_at(gatectl, server.url).done("approvals", "approve", "apr_1", "--yes").out
    assert "not signed: the gateway shows no shown_hash" in out


def test_list_filters_pages_and_says_how_many_there_are_in_all(gatectl: Gatectl) -> None:
    item = {name: DETAIL[name] for name in ("approval_id", "action_id", "state", "risk_level", "expires_at")}
    answers = {"GET /v1/approvals": (200, {"approvals": [item], "count": 1, "total": 91})}
    with scripted_gateway(answers) as server:
        done = pointed_at(gatectl, server.url).done(
            "approvals", "list", "--principal", "victim", "--action", "mail", "--before", "2026-01-31T12:00:00Z"
        )
        (asked,) = server.requests
    assert "these are 1 of 91" in done.err
    query = parse_qs(asked.partition("?")[2])
    assert (query["principal"], query["action_id"]) == (["victim"], ["mail"])
    assert query["before"][0].startswith("2026-01-31T12:00:00")


def test_a_list_says_how_each_call_ended(gatectl: Gatectl) -> None:
    item = {name: DETAIL[name] for name in ("action_id", "risk_level", "expires_at")}
    ends: list[dict[str, Any]] = [
        {"state": "denied", "deny_reason": "too much"}, {"state": "failed", "error_code": "plan_hash_mismatch"},
        {"state": "approved", "receipt_id": "rcpt_1"}, {"state": "expired"},
    ]  # fmt: skip
    page = [item | {"approval_id": f"apr_{number}"} | end for number, end in enumerate(ends)]
    with scripted_gateway({"GET /v1/approvals": (200, {"approvals": page, "count": 4, "total": 4})}) as server:
        listed = pointed_at(gatectl, server.url).done("approvals", "list").out
    in_order(listed, "too much", "plan_hash_mismatch", "rcpt_1", "nobody decided")


def test_one_that_has_ended_is_shown_as_it_was_held_and_labelled_as_ended(gatectl: Gatectl) -> None:
    ended = {
        "state": "denied", "completed_at": "2026-01-31T12:00:00.000Z", "claimed_by": "ada", "deny_reason": "too much",
        "unresolved_domains": ["new.example"],
    }  # fmt: skip
    with scripted_gateway({SHOW: (200, DETAIL | ended)}) as server:
        out = pointed_at(gatectl, server.url).done("approvals", "show", "apr_1").out
    in_order(
        out, "DENIED", "ENDED", "denied by ada at 2026-01-31T12:00:00.000Z; what follows is the plan as it was held",
        "denied for", "too much", "input",
    )  # fmt: skip
    assert "--learn-domain" not in out


def test_one_that_has_expired_is_shown_too(gatectl: Gatectl) -> None:
    expired = {"state": "expired", "expires_at": "2026-01-31T12:00:00.000Z"}
    with scripted_gateway({SHOW: (200, DETAIL | expired)}) as server:
        out = pointed_at(gatectl, server.url).done("approvals", "show", "apr_1").out
        assert f"{SHOW}?ended=true" in server.requests
    assert "without a decision, held until 2026-01-31T12:00:00.000Z at the latest" in out


def test_an_approval_that_ended_long_ago_says_that_its_input_is_not_kept(gatectl: Gatectl) -> None:
    ended = {"state": "denied", "request": None, "request_json": None, "completed_at": "2026-01-31T12:00:00.000Z"}
    with scripted_gateway({SHOW: (200, DETAIL | ended)}) as server:
        assert "not kept any more" in pointed_at(gatectl, server.url).done("approvals", "show", "apr_1").out


def test_watch_tells_each_hold_and_what_becomes_of_it(gatectl: Gatectl) -> None:
    item = {name: DETAIL[name] for name in ("approval_id", "action_id", "state", "risk_level", "expires_at")}
    one, none = (200, {"approvals": [item], "count": 1}), (200, {"approvals": [], "count": 0})
    answers = {
        "GET /v1/approvals": [none, one, one, (503, {"error": "overloaded"}), one, none, none],
        SHOW: [(200, DETAIL), (200, DETAIL | {"state": "claimed"}), (200, DETAIL | {"state": "denied"})],
    }
    with scripted_gateway(answers) as server:
        there, began = pointed_at(gatectl, server.url), time.monotonic()
        with there.started("approvals", "watch", "--interval", "0.2", "--for", "600", "--json") as process:
            assert process.stdout is not None
            assert process.stderr is not None
            lines = [json.loads(process.stdout.readline()) for _ in range(2)]
            asked = server.requests.count("GET /v1/approvals?status=pending&limit=200&group=principal")
            took = time.monotonic() - began
            process.kill()
            told = process.stderr.read()
    assert [line["event"] for line in lines] == ["pending", "denied"]
    assert 7 <= asked <= took / 0.2 + 2, "it polls, and it does not spin"
    assert told.count("asking again until it answers") == 1
    assert told.count("the gateway answers again") == 1


def test_ctrl_c_at_the_question_leaves_the_hold_waiting(gatectl: Gatectl, held: Held) -> None:
    ran = gatectl.on_terminal("approvals", "approve", held.approval_id, answer=INTERRUPT, until="[y/N]")
    assert (ran.code, "gatectl: interrupted" in ran.out) == (130, True)
    assert gatectl.done("approvals", "show", held.approval_id, "--json").json["state"] == "pending"


def test_all_that_a_principal_has_waiting_is_denied_at_once(gatectl: Gatectl, held: Held) -> None:
    told = ("approvals", "deny", "--principal", "dev:anonymous", "--all", "--reason", "not today")
    assert gatectl.here(*told).code == 2, "without a terminal it needs --yes"
    out = gatectl.done(*told, "--yes").out
    assert out.startswith("denied ")
    shown = json.loads(gatectl.done("--json", "approvals", "show", held.approval_id).out)
    assert (shown["state"], shown["deny_reason"]) == ("denied", "not today")
    assert "denied 0 held calls" in gatectl.done(*told, "--yes").out
    assert gatectl.here("approvals", "deny", "--all", "--reason", "x").code == 2


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
