"""Output to a terminal holds no deceptive characters, and only a terminal gets colour; help, completion, keys,
doctor."""

import hashlib
import json
import os
import re
import stat
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from gateway_client import ProofKey
from gateway_client.cli.desk import CliContext
from gateway_client.cli.display.safe import json_text, safe
from gateway_client.cli.main import cli
from hypothesis import given
from hypothesis import strategies as st

from tests.gatectl.conftest import sound
from tests.support.gatectl import Gatectl, pointed_at
from tests.support.gateway import Gateway
from tests.support.scripted_gateway import scripted_gateway

ROOT = Path(__file__).resolve().parents[2]
MANUAL = (ROOT / "docs" / "gatectl.md").read_text()
EVIL = "\x1b[31m\u202egnp.exe\x9b2J\r\u2028\u200b[bold]\x07"


@given(st.text())
def test_safe_text_has_nothing_that_deceives_and_loses_nothing(text: str) -> None:
    shown = safe(text)
    assert not [one for one in shown if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
    assert len(shown) >= len(text)
    as_json = json_text({"x": text})
    assert as_json.isascii()
    assert as_json.isprintable()
    assert json.loads(as_json) == {"x": text}


SESSION = dict.fromkeys(("session_id", "principal", "owner", "identity_method", "issued_at", "expires_at"), EVIL) | {
    "pending_approvals": 1
}
EXPLAINED = dict.fromkeys(
    ("principal", "action_id", "decision", "error_code", "rule", "reason", "policy_version", "request_hash"), EVIL
) | {"assumed": [EVIL]}
PREVIEWED = dict.fromkeys(("principal", "action_id", "trace_id", "decision", "rule", "deny_reason"), EVIL) | {
    "shown": None, "sends": {"method": EVIL, "url": EVIL, "headers": {EVIL: EVIL}, "body": EVIL}
}  # fmt: skip


EVIL_TOOL = {"name": EVIL, "digest": EVIL}


def evil_answers() -> dict[str, Any]:
    item = {
        "approval_id": EVIL, "action_id": EVIL, "state": EVIL, "principal": EVIL * 1000, "risk_level": EVIL,
        "created_at": EVIL, "expires_at": EVIL, "plan_hash": EVIL, "request": {EVIL: EVIL}, "approved_targets": [EVIL],
        "approved_request": {"method": EVIL, "url": EVIL, "headers": [[EVIL, EVIL]], "body": EVIL, "tool": EVIL_TOOL},
        "approved_secrets": [EVIL], "unresolved_domains": [EVIL], "deny_reason": EVIL,
    }  # fmt: skip
    told = ("event_id", "event_type", "timestamp", "decision", "deny_reason", "action_id", "risk_level", "policy_rule",
            "verification_outcome", "approved_by")  # fmt: skip
    event = dict.fromkeys(told, EVIL) | {"receipt_id": "a", "approval_id": "a"}
    event["timestamp"] = "2026-11-21\x9b11:12:13.123Z"  # a time to Python, which the next page begins behind
    status = {
        "status": EVIL, "version": EVIL, "uptime_seconds": 10**15, "actions_registered": 1, "draining": False,
        "in_flight_executions": 0, "dependencies": {EVIL: EVIL, "redis": []}, "weakened": [EVIL],
        "policy_version": EVIL,
    }  # fmt: skip
    receipt = dict.fromkeys(
        ("receipt_id", "grant_id", "provider_module_digest", "result_hash", "started_at", "finished_at"), EVIL
    )
    acl = {"actions": [EVIL], "sinks": [EVIL]}
    evil_look = dict.fromkeys(("verifier_kind", "path", "expected_sha256", "state", "sha256"), EVIL)
    return {
        "GET /v1/approvals": {"approvals": [item], "count": 1},
        "GET /v1/approvals/a": item,
        "POST /v1/approvals/a/deny": {"decision": EVIL, "denied_by": EVIL, "deny_reason": EVIL, "approval_id": EVIL,
                                      "action_id": EVIL, "trace_id": EVIL},
        "GET /v1/audit/events": {"events": [event], "count": 1},
        "GET /v1/admin/status": status,
        "GET /v1/receipts/a": receipt | {
            "provider_receipt": {EVIL: EVIL}, "normalized_result": {"kind": EVIL, "summary": EVIL},
            "verification_outcome": {"status": EVIL}, "effect_evidence": [EVIL], "receipt_version": 2,
            "principal": EVIL, "action_id": EVIL, "policy_rule": EVIL, "trace_id": EVIL,
            "approval": dict.fromkeys(("approval_id", "approved_by", "operator_jkt", "operator_proof_jti"), EVIL),
        },
        "GET /v1/actions": [{"action_id": EVIL, "version": EVIL, "risk_level": EVIL, "description": EVIL}],
        "GET /v1/actions/a": {"action_id": EVIL, "version": EVIL, "risk_level": EVIL, "resource_limits": {EVIL: EVIL}},
        "GET /v1/actions/a/schema/request": {"properties": {EVIL: EVIL}},
        "GET /v1/admin/policy": {"policy_version": EVIL, "principals": {EVIL: acl}, "allowlist": {EVIL: [EVIL]},
                                 "denied_actions": {EVIL: EVIL}},
        "GET /v1/admin/policy/a": acl | {"principal": EVIL, "risk_breakdown": {EVIL: [EVIL]}},
        "POST /v1/admin/policy/explain": EXPLAINED,
        "POST /v1/admin/actions/a/preview": PREVIEWED,
        "GET /v1/admin/sessions": {"sessions": [SESSION], "next": None},
        "POST /v1/admin/sessions/a/revoke": {"session_id": EVIL, "principal": EVIL, "expires_at": EVIL,
                                             "already_revoked": False},
        "GET /v1/admin/domains": {"domains": [{"domain": EVIL, "action_id": EVIL}]},
        "GET /v1/admin/intents": {"intents": [dict.fromkeys(("intent_id", "trace_id", "action_id", "principal",
                                  "dispatched_at", "grant_id", "provider_module"), EVIL) | {"age_seconds": 1}]},
        "POST /v1/admin/intents/a/resolve": dict.fromkeys(("intent_id", "trace_id", "action_id", "outcome",
                                                           "resolved_by"), EVIL),
        "GET /v1/admin/intents/a": dict.fromkeys(("intent_id", "trace_id", "action_id", "principal", "dispatched_at",
                                   "grant_id", "provider_module", "plan_hash", "approval_id", "approved_by", "owner",
                                   "action_version", "risk_level", "session_id", "policy_rule", "request_hash"), EVIL)
                                   | {"age_seconds": 1, "is_under_way": False, "sinks": [EVIL], "verifier": {
                                       "can_look_again": True, "verifier_kind": EVIL, "reason": EVIL * 1000,
                                       "expected": {"path": EVIL, "sha256": EVIL, "bytes": 1},
                                       "last_look": dict.fromkeys(("event_id", "timestamp", "principal"), EVIL)
                                       | {"seen": evil_look}}},
        "POST /v1/admin/intents/a/verify": {"intent_id": EVIL, "trace_id": EVIL, "action_id": EVIL, "seen": evil_look},
        "GET /v1/audit/checkpoint": {"origin": EVIL, "size": 1, "root": EVIL, "time": EVIL, "unresolved_intents": 0,
                                     "checkpoint": EVIL, "keys": [EVIL]},
        "GET /readyz": {"status": EVIL},
        "GET /healthz": {"status": "ok"},
    }  # fmt: skip


@pytest.fixture(scope="module")
def evil() -> Iterator[str]:
    """A gateway whose every text is hostile."""
    with scripted_gateway({name: (200, body) for name, body in evil_answers().items()}) as server:
        yield server.url


@pytest.mark.parametrize(
    "command",
    [
        "status", "approvals list", "approvals show a", "approvals deny a", "approvals watch --for 0", "audit events",
        "audit tail --for 0", "audit checkpoint", "receipts show a", "actions", "actions show a", "policy show",
        "policy show a", "domains", "allowlist", "intents", "why a", "receipts list",
        "intents resolve a --outcome happened", "intents show a", "intents resolve a --verify", "doctor", "sessions",
        "sessions revoke a --yes",
        "policy explain a a", "actions preview a --principal a",
    ],
)  # fmt: skip
def test_no_command_shows_what_could_deceive(gatectl: Gatectl, evil: str, command: str) -> None:
    there = pointed_at(gatectl, evil)
    for flags in ([], ["--json"]):
        ran = there.here(*command.split(), *flags)
        assert ran.code in (0, 1, 4), ran.err
        assert ran.out or ran.code == 4, "4: the hold that is to be denied is decided, by what the gateway says"
        for text in (ran.out, ran.err):
            assert not [one for one in text if one != "\n" and unicodedata.category(one) in {"Cc", "Cf", "Zl", "Zp"}]
        if not flags:
            assert len(ran.out) < 60_000, "giant texts are cut"


def test_a_note_is_shown_safe_and_an_alarm_too(gatectl: Gatectl, evil: str, tmp_path: Path) -> None:
    there = pointed_at(gatectl, evil)
    shown = there.done("audit", "checkpoint", "--note")
    alarm = there.here("audit", "watch", "--state", str(tmp_path / "log.state"), "--once")
    assert (alarm.code, "\\u202e" in alarm.out) == (8, True)
    for text in (shown.out, alarm.out, alarm.err):
        assert not [one for one in text if one != "\n" and unicodedata.category(one) in {"Cc", "Cf", "Zl", "Zp"}]


def test_tables_on_a_terminal_are_safe_and_coloured_there_alone(gatectl: Gatectl, evil: str) -> None:
    there = pointed_at(gatectl, evil)
    shown = there.on_terminal("approvals", "list").out
    assert "[bold]" in shown, "markup of others is text"
    assert not re.findall(r"\x1b\[31m|\x9b|\u202e|\x07", shown)
    assert "\x1b[" in shown
    plain = gatectl.with_environment(NO_COLOR="1").on_terminal("doctor").out
    assert "\x1b" not in plain
    assert "reachable" in plain
    assert "\x1b" not in sound(gatectl, "doctor").out


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, one in group.commands.items():
        yield from commands(one, (*path, name)) if isinstance(one, click.Group) else [(*path, name)]


@pytest.mark.parametrize("path", list(commands(cli)), ids=" ".join)
def test_every_command_says_what_it_does_and_is_in_the_manual(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, [*path, "--help"], prog_name="gatectl")
    assert result.exit_code == 0
    assert f"Usage: gatectl {' '.join(path)}" in result.output
    assert "--json" in result.output
    rows = [line for line in MANUAL.splitlines() if line.startswith("| `")]
    assert any(all(re.search(rf"\b{word}\b", row) for word in path) for row in rows)


def test_every_code_with_an_advice_is_a_code() -> None:
    from gateway_client.cli.complaints import NEXT

    known = set(
        re.findall(
            r"`([a-z_]+)`", ((ROOT / "docs" / "errors.md").read_text() + (ROOT / "sdk" / "README.md").read_text())
        )
    )
    assert set(NEXT) - known <= {
        "approval_denied",
        "approval_expired",
        "approval_failed",
        "approval_pending",
        "protocol_violation",
    }


def test_every_failure_of_the_gateway_has_an_advice_of_its_own() -> None:
    from gateway_client.cli.complaints import NEXT

    rows = re.findall(r"^\| 5\d\d \| ([^|]+) \|", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    assert not {code for row in rows for code in re.findall(r"`(\w+)`", row)} - set(NEXT)


def test_completion_is_printed_and_completes(gatectl: Gatectl) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_GATECTL_COMPLETE" in gatectl.done("completion", shell).out
    script = gatectl.done("completion", "bash").out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=120)


def completing(gatectl: Gatectl, words: str) -> Gatectl:
    variables = {"COMP_WORDS": f"gatectl {words}", "COMP_CWORD": str(len(words.split()))}
    return gatectl.with_environment(_GATECTL_COMPLETE="bash_complete", **variables)


def test_a_shell_is_offered_the_contexts_that_there_are(gatectl: Gatectl) -> None:
    assert completing(gatectl, "context use d").process().out.split() == ["plain,dev"]


def test_a_shell_is_offered_the_actions_that_there_are(gatectl: Gatectl) -> None:
    patient = CliContext(completion_seconds=120.0)  # no user waits here
    assert completing(gatectl, "execute text_").here(desk=patient).out.split() == ["plain,text_digest"]


def test_without_a_command_there_is_help_and_half_a_command_is_usage(empty: Gatectl) -> None:
    bare, half = empty.here(), empty.here("audit")
    assert (bare.code, bare.out, bare.err.startswith("Usage: gatectl ")) == (2, "", True)
    assert (half.code, half.err) == (2, "gatectl: usage: Missing command - see gatectl audit --help\n")


def test_doctor_says_what_fails_and_how_to_mend_it(empty: Gatectl, tmp_path: Path, gate: Gateway) -> None:
    assert "context file" in empty.here("doctor").out
    loose = tmp_path / "k"
    loose.write_text("x")
    loose.chmod(0o640)
    there = empty.with_environment(
        GATECTL_ADDRESS=f"unix://{tmp_path}/none.sock", GATECTL_PUBLIC_BASE_URL=gate.base,
        GATECTL_OPERATOR_KEY_FILE=str(loose), GATECTL_PRIVATE_KEY_FILE=str(tmp_path / "none.pem"),
    )  # fmt: skip
    ran = there.here("doctor", "--json")
    rows = {row["check"]: row for row in ran.json["checks"]}
    assert (ran.code, ran.error["error"]) == (1, "doctor")
    assert {name for name, row in rows.items() if row["result"] == "fail"} == {
        "socket", "reachable", "operator key", "private key", "credential",
    }  # fmt: skip
    assert all(row["mend"] for row in rows.values() if row["result"] != "ok")
    assert f"chmod 600 {loose}" in rows["operator key"]["mend"]


@pytest.mark.parametrize(
    ("date", "result"),
    [("Sat, 01 Jan 2000 00:00:00 GMT", "fail"), ("Fri, 01 Jan 2100 00:00:00 GMT", "fail"), ("soon", "warn")],
)
def test_doctor_compares_the_clocks(gatectl: Gatectl, date: str, result: str) -> None:
    from datetime import UTC, datetime

    from gateway_client.cli.checks import _clock

    now = datetime.now(UTC)
    assert _clock(date, now, now).result == result
    assert _clock(now.strftime("%a, %d %b %Y %H:%M:%S GMT"), now, now).result == "ok"


def test_metrics_are_printed_and_written_whole(gatectl: Gatectl, tmp_path: Path) -> None:
    assert gatectl.done("metrics").out.endswith("# EOF\n")
    file = tmp_path / "gateway.prom"
    gatectl.done("metrics", "--output", str(file))
    gatectl.done("metrics", "--output", str(file))
    assert file.read_text().endswith("# EOF\n")
    assert os.listdir(tmp_path) == ["gateway.prom"]
    assert gatectl.here("metrics", "--json").code == 2


def test_new_keys_are_private_whole_and_replace_nothing(empty: Gatectl, tmp_path: Path) -> None:
    file = tmp_path / "bob.pem"
    out = empty.done("keys", "new", str(file), "--operator", "bob").out
    api_key = (tmp_path / "bob.key").read_text().strip()
    assert re.fullmatch(r"key-bob-[0-9a-f]{32}", api_key)
    assert hashlib.sha256(api_key.encode()).hexdigest() in out
    assert ProofKey.load(file).thumbprint in out
    assert api_key not in out
    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o600}
    (tmp_path / "bob.key").unlink()
    assert empty.here("keys", "new", str(file), "--operator", "bob").code == 5
    assert sorted(os.listdir(tmp_path)) == ["bob.pem"], "both files or none"


@pytest.mark.parametrize("text", ["{", '{"a": 1, "a": 2}', "NaN", ""])
def test_a_request_that_is_no_json_is_usage_and_is_not_quoted(gatectl: Gatectl, tmp_path: Path, text: str) -> None:
    file = tmp_path / "request.json"
    file.write_text(text)
    ran = gatectl.here("execute", "text_digest", "--request", str(file))
    assert (ran.code, ran.out) == (2, "")
