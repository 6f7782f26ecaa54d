"""Each exit code, from the console script, as a process where that differs; and the table that they come from."""

import inspect
import json
import re
import signal
from pathlib import Path

import gateway_client.errors
import pytest
from gateway_client import GatewayError, Unreachable
from gateway_client.cli.complaints import complaint, line_of
from gateway_client.cli.exits import BY_ERROR, ScriptExit, exit_of
from gateway_client.contract.failures import MEANINGS

from tests.support.gatectl import Gatectl, pointed_at
from tests.support.gateway import wait_for
from tests.support.scripted_gateway import scripted_gateway
from tests.support.upstream import Upstream

DOCUMENTS = Path(__file__).resolve().parents[2] / "docs"
MANUAL = DOCUMENTS / "gatectl.md"
ERRORS = DOCUMENTS / "errors.md"
HELD = {"decision": "pending_approval", "approval_id": "apr_1", "request_hash": "sha256:00", "trace_id": "trc_1"}
LEASE = {
    "lease_jwt": "a.b.c", "session_id": "ses_1", "lease_jti": "lea_1", "principal": "p", "owner": None,
    "scopes": ["tools:call"], "expires_in": 3600, "expires_at": "2999-01-01T00:00:00.000Z",
}  # fmt: skip
MEMBERS = {
    "error", "message", "exit_code", "status", "retry_after", "trace_id", "approval_id", "may_have_run", "failure",
    "effect", "intent_id", "idempotency_key", "violations", "did_you_mean", "next",
}  # fmt: skip


def test_every_exit_code_is_in_the_manual() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", MANUAL.read_text(), re.MULTILINE)
    assert {int(code): name for code, name in rows} == {int(one): one.name.lower() for one in ScriptExit}


def test_every_error_of_the_library_has_its_exit_code() -> None:
    kinds = [kind for _, kind in inspect.getmembers(gateway_client.errors, inspect.isclass)]
    assert {kind for kind in kinds if issubclass(kind, GatewayError)} == set(BY_ERROR)
    assert exit_of(type("Newer", (gateway_client.errors.NotFound,), {})("x")) is ScriptExit.NOT_FOUND


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (400, "invalid_request", ScriptExit.USAGE),
        (401, "invalid_operator_token", ScriptExit.DENIED),
        (403, "policy_denied", ScriptExit.DENIED),
        (404, "not_found", ScriptExit.NOT_FOUND),
        (409, "plan_integrity", ScriptExit.CONFLICT),
        (422, "schema_violation", ScriptExit.USAGE),
        (429, "rate_limit_exceeded", ScriptExit.RATE_LIMITED),
        (500, "internal_error", ScriptExit.FAILED),
        (502, "action_execution_failed", ScriptExit.FAILED),
        (503, "ledger_unavailable", ScriptExit.UNAVAILABLE),
    ],
)
def test_a_status_becomes_an_exit_code_and_one_line_with_what_to_do(
    gatectl: Gatectl, status: int, code: str, exit_code: ScriptExit
) -> None:
    answers = {"GET /v1/admin/status": (status, {"error": code, "message": "because"})}
    with scripted_gateway(answers, X_Trace_Id="trc_1") as server:
        there = pointed_at(gatectl, server.url)
        said, as_json = there.here("status"), there.here("status", "--json")
    assert (said.code, said.out) == (exit_code, "")
    assert re.fullmatch(rf"gatectl: {code}: because \[trc_1\] - .+\n", said.err)
    assert (as_json.code, as_json.out, set(as_json.error)) == (exit_code, "", MEMBERS)
    assert (as_json.error["error"], as_json.error["exit_code"], as_json.error["status"]) == (code, exit_code, status)
    assert as_json.error["next"]


def test_a_command_that_is_done_ends_with_0(gatectl: Gatectl) -> None:
    ran = gatectl.process("status")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("status ")


def test_wrong_usage_ends_with_2(gatectl: Gatectl) -> None:
    ran = gatectl.process("approvals", "shwo", "--json")
    assert (ran.code, ran.out, set(ran.error)) == (2, "", MEMBERS)
    assert ran.error["error"] == "usage"
    assert "Did you mean show?" in ran.error["message"]
    assert gatectl.here("completion").err.startswith(
        "gatectl: usage: Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish - "
    )
    assert gatectl.here("webhooks", "test", "none").err.endswith(" - see what there is: gatectl webhooks list\n")


@pytest.mark.parametrize("number", ["99.99999999999999999", "1e400", "1e-99999999999999999999"])
def test_a_bound_that_would_be_sent_as_another_number_is_wrong_usage(gatectl: Gatectl, number: str) -> None:
    pay = ("payment_transfer", "/amount_cents")
    for asked in (
        ("policy", "thresholds", "set", *pay, "--hold-above", number),
        ("policy", "thresholds", "set", *pay, "--deny-unless-in", f"1,{number}"),
        ("policy", "caps", "set", *pay, "--per", "all", "--window", "60", "--deny-above", number),
        ("approvals", "standing", "add", pay[0], "--principal", "p", "--until", "2h", "--where", f"{pay[1]}<={number}"),
    ):
        ran = gatectl.here(*asked, "--yes", "--json")
        assert (ran.code, ran.error["error"]) == (2, "usage"), asked
        assert ran.error["message"] == "a number has more digits than can be compared"


def test_every_wrong_field_of_a_request_is_reported(gatectl: Gatectl) -> None:
    asked = ("execute", "text_digest", "--request", '{"txt": "\\u202e"}')
    said, as_json = gatectl.here(*asked), gatectl.here(*asked, "--json")
    first, *places = said.err.splitlines()
    assert first.startswith("gatectl: schema_violation: /")
    assert sorted(places) == ["  /text: is missing", "  /txt: unknown property"]
    assert sorted(as_json.error["violations"]) == ["/text: is missing", "/txt: unknown property"]


def test_a_similar_name_is_suggested_and_hostile_names_are_escaped(gatectl: Gatectl) -> None:
    said, as_json = (gatectl.here("execute", "text_digst", "--request", "{}", *flags) for flags in ([], ["--json"]))
    assert said.err.startswith("gatectl: action_not_found: did you mean text_digest? [trc_")
    assert as_json.error["did_you_mean"] == ["text_digest"]
    body = {"error": "action_not_found", "did_you_mean": ["\x1b[31ma\u202e"], "violations": ["/\x9b: b\u2066"]}
    with scripted_gateway({"GET /v1/admin/status": (404, body)}) as server:
        err = pointed_at(gatectl, server.url).here("status").err
    assert not [one for one in err if one != "\n" and not one.isprintable()]


def test_a_list_of_rules_without_one_says_of_which_action(gatectl: Gatectl) -> None:
    assert gatectl.done("policy", "caps", "list", "pay_tranfer").out == "no sum holds or denies a call of pay_tranfer\n"
    said = gatectl.done("policy", "thresholds", "list", "pay_tranfer").out
    assert said == "no value holds or denies a call of pay_tranfer\n"


def test_a_denied_call_ends_with_3(gatectl: Gatectl) -> None:
    ran = gatectl.process("execute", "forbidden_export", "--request", "-", stdin='{"table": "customers"}')
    assert ran.code == 3
    assert ran.err.startswith("gatectl: policy_denied: exports of tables are not allowed")


def test_a_gateway_that_is_away_ends_with_6(gatectl: Gatectl) -> None:
    ran = gatectl.process("--address", "http://127.0.0.1:1", "status")
    assert (ran.code, ran.out) == (6, "")
    assert ran.err.startswith("gatectl: unreachable: ")


def test_a_lost_call_names_the_key_to_run_it_again_with() -> None:
    error = Unreachable("connection_lost")
    error.idempotency_key = "re 7"
    assert "gatectl calls; the same with --idempotency-key 're 7' runs at most once" in line_of(error)
    assert complaint(error)["idempotency_key"] == "re 7"


@pytest.mark.parametrize("code", ["timed_out", "connection_lost"])
def test_a_gateway_that_does_not_answer_is_looked_at_on_its_host(code: str) -> None:
    assert "on the gateway's host: gateway status" in line_of(Unreachable(code))
    assert "gatectl status" not in line_of(Unreachable(code))


def test_the_same_call_under_a_key_runs_once(gatectl: Gatectl, up: Upstream) -> None:
    asked = ("execute", "http_post", "path=keyed/once", "message=a", "--idempotency-key", "in 7")
    first, again = gatectl.done(*asked, "--json"), gatectl.done(*asked, "--json")
    assert first.json["receipt_id"] == again.json["receipt_id"]
    assert sum(one.path == "/keyed/once" for one in up.seen) == 1
    other = gatectl.here("execute", "http_post", "path=keyed/other", "message=a", "--idempotency-key", "in 7")
    assert (other.code, "choose a new --idempotency-key" in other.err) == (2, True)
    assert gatectl.here("execute", "http_post", "path=x", "message=a", "--idempotency-key", "").code == 2


def test_a_failed_call_names_the_list_of_calls(gatectl: Gatectl) -> None:
    ran = gatectl.here("execute", "http_post", "path=status/500", "message=a")
    assert ran.code == 1
    assert "look before you run it again: see gatectl calls; an operator sees more: gatectl why trc_" in ran.err


def test_a_failed_verification_ends_with_8(gatectl: Gatectl, tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"keys": []}')
    ran = gatectl.process("receipts", "verify", "-", "--keys", str(tmp_path / "keys.json"), stdin='{"receipt_id": "r"}')
    assert ran.code == 8
    assert "unsigned" in ran.out


def test_an_interrupt_ends_with_130(gatectl: Gatectl, agent: object) -> None:
    with gatectl.started("audit", "tail", "--interval", "0.2", "--for", "600") as process:
        assert process.stdout is not None
        wait_for(process.stdout.readline, "the first event")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.strip().startswith("gatectl: interrupted")


def test_a_malformed_answer_fails_with_a_named_error(gatectl: Gatectl) -> None:
    with scripted_gateway({"GET /v1/admin/status": (200, "<html>")}) as server:
        ran = pointed_at(gatectl, server.url).here("status")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("gatectl: protocol_violation: ")


def test_an_answer_that_does_not_say_how_much_was_erased_is_no_success(gatectl: Gatectl) -> None:
    with scripted_gateway({"POST /v1/admin/evidence/erase": (200, {})}) as server:
        ran = pointed_at(gatectl, server.url).here(
            "evidence", "erase", "--principal", "p", "--reason", "asked", "--yes"
        )
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("gatectl: protocol_violation: erased values has no erased")


def test_a_call_that_waits_for_an_operator_is_no_success(gatectl: Gatectl, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"to": "acct-7", "amount_cents": 29000, "currency": "EUR"}')
    ran = gatectl.here("execute", "payment_transfer", "--request", str(request))
    assert ran.code == 3
    assert ran.out.startswith("HELD  apr_")
    assert "gatectl approvals show apr_" in ran.err
    answers = {
        "POST /v1/leases": (200, LEASE),
        "POST /v1/actions/payment_transfer/execute": (202, HELD),
        # A client that would have to retry after its deadline stops waiting at once.
        "GET /v1/approvals/apr_1/poll": (200, {"approval_id": "apr_1", "state": "pending", "retry_after_seconds": 60}),
    }
    with scripted_gateway(answers) as server:
        there = pointed_at(gatectl, server.url)
        waits = ("execute", "payment_transfer", "--request", str(request), "--wait", "--timeout", "50")
        ended, as_json = there.here(*waits), there.here(*waits, "--json")
    assert json.loads(as_json.err)["error"] == "approval_pending"
    assert ended.code == 3, ended.err
    first, second = ended.err.splitlines()
    assert first.startswith("gatectl: held as apr_")
    assert second.startswith("gatectl: approval_pending")


def test_a_failure_is_told_by_its_meaning_unless_the_gateway_gives_a_reason() -> None:
    error = GatewayError("action_execution_failed", status=502)
    error.failure = "limit_fuel"
    assert "action_execution_failed (limit_fuel): the provider used up its fuel" in line_of(error)
    error.reason = "the answer is no JSON"
    assert "(limit_fuel): the answer is no JSON" in line_of(error)


def test_the_page_of_errors_has_the_meaning_of_each_failure() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+\.) \|", ERRORS.read_text(), re.MULTILINE)
    assert {name: meaning for name, meaning in rows if name in MEANINGS} == MEANINGS
