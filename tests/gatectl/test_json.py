"""The output of --json has the members that docs/gatectl.md lists, compared with real answers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from gateway_client import AgentClient, Executed, Held

from tests.gatectl.conftest import sound
from tests.support.gatectl import Gatectl, pointed_at
from tests.support.gateway import Gateway
from tests.support.scripted_gateway import scripted_gateway

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "gatectl.md"
SECTION = MANUAL.read_text().partition("## JSON")[2].partition("## The context file")[0]
ROWS = re.findall(r"^\| `([a-z][^`|]*)`(, held)? \| (.*) \|$", SECTION, re.MULTILINE)
SHAPES = {command + is_held: text.partition(";")[0] for command, is_held, text in ROWS}
LISTED = {"receipt_id", "timestamp", "action_id", "principal", "verification_outcome", "error_code"}
seen: set[str] = set()


def check(command: str, document: Any) -> Any:
    """Fail unless the document has the members of its row: exactly those, or, with an ellipsis, at least those."""
    shape = SHAPES[command]
    members = set(re.findall(r"`(\w+)`", shape))
    assert members, command
    for one in document if shape.startswith("an array") else [document]:
        assert members <= set(one) if "…" in shape else members == set(one), f"{command}: {set(one) ^ members}"
    seen.add(command)
    return document


def ask(gatectl: Gatectl, command: str, *arguments: str, code: int = 0) -> Any:
    """Run a command that is named as in the manual, and check its document."""
    words = [word for word in command.partition(",")[0].split() if not word.isupper()]
    ran = gatectl.here(*words, *arguments, "--json")
    assert ran.code == code, ran.err
    assert ran.out.isascii()
    return check(command, ran.json)


def test_the_documents_of_the_running_gateway_are_as_declared(gatectl: Gatectl) -> None:
    for command in ("status", "epoch", "intents list", "audit summary", "reload", "context show", "context list"):
        ask(gatectl, command)
    assert ask(gatectl, "actions list")
    shown = ask(gatectl, "actions show", "text_digest")
    assert shown["manifest"]["action_id"] == "text_digest"
    assert "text" in shown["request_schema"]["properties"]
    told = sound(gatectl, "doctor", "--json")
    assert told.out.isascii()
    report = check("doctor", told.json)
    assert {frozenset(row) for row in report["checks"]} == {frozenset({"check", "result", "found", "mend"})}


def test_the_documents_of_a_settled_intent_are_as_declared(gatectl: Gatectl) -> None:
    """No call of a sound gateway stays without an end, so this one answers what the interface says."""
    answer = {
        "intent_id": "intent_1",
        "trace_id": "trc_1",
        "action_id": "a",
        "outcome": "happened",
        "resolved_by": "ops",
    }
    with scripted_gateway({"POST /v1/admin/intents/intent_1/resolve": (200, answer)}) as server:
        there = pointed_at(gatectl, server.url)
        resolution = ask(there, "intents resolve", "intent_1", "--outcome", "happened", "--note", "the bank says so")
        plain = there.done("intents", "resolve", "intent_1", "--outcome", "happened")
    assert (resolution, plain.out) == (answer, "intent_1 of a: happened\n")
    refused = gatectl.here("intents", "resolve", "intent_1", "--outcome", "unknown")
    assert (refused.code != 0, "intent_not_found" in refused.err) == (True, True)


def test_the_documents_of_webhooks_are_as_declared(gatectl: Gatectl) -> None:
    """A real gateway answers these in tests/integration/test_webhook_letters.py."""
    letter = {"event_id": "evt_1", "endpoint": "chat", "type": "revocation", "attempts": 4,
              "given_up_at": "2026-11-21T15:06:46.305Z", "error": "the receiver answered 503"}  # fmt: skip
    listed = {
        "endpoints": [{"name": "chat", "state": "active", "waiting": 2, "given_up": 1}], "dead_letters": [letter]
    }  # fmt: skip
    tested = {"name": "chat", "outcome": "delivered", "status": 200, "error": None, "event_id": "evt_2"}
    moved = {"name": "chat", "redelivered": 1, "left": 0}
    of_chat = "POST /v1/admin/webhooks/chat"
    with scripted_gateway({
        "GET /v1/admin/webhooks": (200, listed), f"{of_chat}/test": (200, tested), f"{of_chat}/redeliver": (200, moved)
    }) as server:  # fmt: skip
        there = pointed_at(gatectl, server.url)
        assert ask(there, "webhooks list") == listed
        assert ask(there, "webhooks test", "chat") == tested
        assert ask(there, "webhooks redeliver", "chat") == moved
        plain = there.done("webhooks", "list").out
        assert "the receiver answered 503" in plain
        assert there.done("webhooks", "test", "chat").out == "chat: delivered, as evt_2\n"


def test_the_documents_of_erased_values_are_as_declared(gatectl: Gatectl) -> None:
    told = ask(gatectl, "evidence erase", "--principal", "no-such-principal", "--reason", "asked for", "--yes")
    assert told == {"erased": 0, "waiting": 0, "sealed": []}


def test_the_documents_of_sessions_and_explanations_are_as_declared(gatectl: Gatectl, gate: Gateway) -> None:
    one, other = gate.agent(3), gate.agent()
    listed = ask(gatectl, "sessions list", "--principal", "dev:anonymous")
    assert {one.session_id, other.session_id} <= {session["session_id"] for session in listed["sessions"]}
    plain = gatectl.done("sessions").out
    assert re.search(rf"{one.session_id} .* 3 of 3", plain)
    ended = ask(gatectl, "sessions revoke", one.session_id[-12:], "--yes")
    assert [session["session_id"] for session in ended["sessions"]] == [one.session_id]
    again = gatectl.done("sessions", "revoke", one.session_id, "--yes").out
    assert again == f"{one.session_id} of dev:anonymous: was revoked before\n"
    assert one.execute("text_digest", {"text": "x"}).status_code == 401
    gone = gatectl.here("sessions", "revoke", "--principal", "nobody", "--yes")
    assert (gone.code, gone.out) == (0, "nobody has no lease\n")
    for wrong in ((), (one.session_id, "--principal", "dev:anonymous")):
        assert gatectl.here("sessions", "revoke", *wrong).code == 2
    would = ask(
        gatectl, "policy explain", "dev:anonymous", "payment_transfer", "to=a", "amount_cents=1", "currency=EUR"
    )
    assert (would["decision"], would["rule"]) == ("pending_approval", "hold_high_risk")
    told = gatectl.done("policy", "explain", "dev:anonymous", "text_digest", "text=x", "--calls-remaining", "0").out
    assert "budget_exhausted" in told
    assert re.search(r"rule +allow\n", told)


def test_the_documents_of_a_preview_are_as_declared(gatectl: Gatectl) -> None:
    asked = ("http_post", "--principal", "dev:anonymous", "--request", '{"path": "messages", "message": "hello"}')
    preview = ask(gatectl, "actions preview", *asked)
    assert (preview["decision"], preview["sends"]["method"]) == ("allow", "POST")
    plain = gatectl.done("actions", "preview", *asked).out
    assert re.search(r"decision +allowed\n", plain)
    assert f"sends POST {preview['sends']['url']}\n" in plain
    held = gatectl.done(
        "actions",
        "preview",
        "payment_transfer",
        "--principal",
        "dev:anonymous",
        "to=a",
        "amount_cents=1",
        "currency=EUR",
    ).out
    assert re.search(r"decision +held for a person\n", held)


SEEN = {"verifier_kind": "fs_hash", "path": "notes/a", "expected_sha256": "sha256:aa", "state": "matches",
        "sha256": "sha256:aa"}  # fmt: skip
LOOKED = {"intent_id": "intent_1", "trace_id": "trc_1", "action_id": "a", "seen": SEEN}
SHOWN: dict[str, Any] = {
    "intent_id": "intent_1", "trace_id": "trc_1", "action_id": "file_write", "principal": "billing",
    "dispatched_at": "2026-11-21T15:06:46.305Z", "age_seconds": 754, "grant_id": "grant_1",
    "provider_module": "sha256:bb", "plan_hash": "sha256:cc", "approval_id": "apr_1", "approved_by": "ann",
    "action_version": "1.0.0", "risk_level": "high", "request_hash": "sha256:dd", "session_id": "ses_1",
    "owner": None, "policy_rule": "allow", "sinks": ["fs_write"], "timeout_seconds": 10.0, "is_under_way": False,
    "verifier": {
        "verifier_kind": "fs_hash", "can_look_again": True, "reason": None,
        "expected": {"path": "notes/a", "sha256": "sha256:aa", "bytes": 5},
        "last_look": {"event_id": "evt_1", "timestamp": "2026-11-21T15:19:00.000Z", "principal": "operator:bo",
                      "seen": SEEN},
    },
}  # fmt: skip


def test_the_documents_of_an_intent_that_is_looked_at_are_as_declared(gatectl: Gatectl) -> None:
    """A real gateway answers these in tests/integration/test_unresolved_intents.py."""
    resolved = {"intent_id": "intent_1", "trace_id": "trc_1", "action_id": "a", "outcome": "happened",
                "resolved_by": "ops"}  # fmt: skip
    of_one = "/v1/admin/intents/intent_1"
    verifier = {"verifier_kind": "http_status", "can_look_again": False, "reason": "it would be sent again"}
    with scripted_gateway({
        f"GET {of_one}": (200, SHOWN), f"POST {of_one}/verify": (200, LOOKED),
        f"POST {of_one}/resolve": (200, resolved),
        "GET /v1/admin/intents/intent_2": (200, SHOWN | {"intent_id": "intent_2", "verifier": verifier}),
        "GET /v1/admin/intents/intent_3": (200, SHOWN | {"intent_id": "intent_3", "is_under_way": True}),
        "POST /v1/admin/intents/intent_2/verify": (409, {"error": "intent_not_verifiable", "message": "sent again"}),
    }) as server:  # fmt: skip
        there = pointed_at(gatectl, server.url)
        assert ask(there, "intents show", "intent_1") == SHOWN
        plain = there.done("intents", "show", "intent_1").out
        for part in (
            "UNRESOLVED  file_write 1.0.0",
            "fs_write",
            "billing",
            "apr_1 by ann",
            "sha256:cc",
            "trc_1",
            "2026-11-21T15:06:46.305Z",
            "intents resolve intent_1 --verify",
            "--outcome happened|",
        ):
            assert part in plain
        assert "--verify" not in there.done("intents", "show", "intent_2").out
        assert "gatectl intents resolve" not in there.done("intents", "show", "intent_3").out
        ran = there.here("intents", "resolve", "--verify", "intent_1", "--json")
        assert check("intents resolve --verify", ran.json) == LOOKED
        both = there.done("intents", "resolve", "intent_1", "--verify", "--outcome", "happened", "--json")
        assert both.json == LOOKED | resolved
        text = there.done("intents", "resolve", "intent_1", "--verify").out
        assert "stays unresolved" in text
        refused = there.here("intents", "resolve", "intent_2", "--verify", "--outcome", "happened", "--json")
        assert (refused.code, refused.error["error"], refused.error["message"]) == (
            5, "intent_not_verifiable", "sent again"
        )  # fmt: skip
        wrong = [there.here("intents", "resolve", "intent_1", *more).code for more in ((), ("--verify", "--note", "x"))]
    assert wrong == [2, 2]
    assert "POST /v1/admin/intents/intent_2/resolve" not in server.requests
    assert server.requests.count(f"POST {of_one}/resolve") == 1


def test_the_documents_of_approvals_are_as_declared(gatectl: Gatectl, held: Held) -> None:
    listed = ask(gatectl, "approvals list", "--status", "pending")
    assert held.approval_id in [one["approval_id"] for one in listed["approvals"]]
    assert ask(gatectl, "approvals show", held.approval_id)["state"] == "pending"
    ran = gatectl.done("approvals", "watch", "--for", "0", "--json")
    for line in ran.lines:
        check("approvals watch", line)
    assert held.approval_id in [line["approval"]["approval_id"] for line in ran.lines]
    assert ask(gatectl, "approvals deny", held.approval_id, "--reason", "no")["deny_reason"] == "no"


def test_the_documents_of_an_approval_that_is_given_are_as_declared(gatectl: Gatectl, held: Held) -> None:
    done = ask(gatectl, "approvals approve", held.approval_id, "--yes")
    assert done["approval"]["approval_id"] == held.approval_id


def test_the_documents_of_evidence_are_as_declared(gatectl: Gatectl, agent: AgentClient, tmp_path: Path) -> None:
    done = agent.execute("text_digest", {"text": "evidence"})
    assert isinstance(done, Executed)
    for line in gatectl.done("audit", "events", "--limit", "3", "--json").lines:
        check("audit events", line)
    for line in gatectl.done("audit", "tail", "--for", "0", "-n", "2", "--json").lines:
        check("audit tail", line)
    export = str(tmp_path / "events.jsonl")
    assert ask(gatectl, "audit events --export", export)["events"] > 1
    assert ask(gatectl, "audit verify --export", export)["intact"] is True
    assert ask(gatectl, "audit verify")["intact"] is True
    checkpoint = ask(gatectl, "audit checkpoint")
    watch = ("audit", "watch", "--state", str(tmp_path / "log.state"), "--once", "--json")
    for _ in range(2):
        check("audit watch", gatectl.done(*watch).json)
    bundle = tmp_path / "bundle.json"
    bundle.write_text(json.dumps(ask(gatectl, "receipts bundle", done.receipt_id)))
    assert ask(gatectl, "verify", str(bundle), "--origin-key", checkpoint["keys"][0])["proven"] is True
    bundle.write_text(bundle.read_text().replace('"leaves"', '"left"'))
    assert ask(gatectl, "verify", str(bundle), "--origin-key", checkpoint["keys"][0], code=8)["call"] is None
    receipt, keys = tmp_path / "receipt.json", tmp_path / "keys.json"
    receipt.write_text(json.dumps(ask(gatectl, "receipts show", done.receipt_id, "--verify")))
    listed = ask(gatectl, "receipts list", "--limit", "3")["receipts"]
    assert all(set(one) == LISTED for one in listed)
    ask(gatectl, "why", done.trace_id)
    keys.write_text(json.dumps(ask(gatectl, "receipts keys")))
    verified = ask(gatectl, "receipts verify", str(receipt), "--keys", str(keys))
    assert verified == {
        "receipts": [{"receipt_id": done.receipt_id, "status": "verified"}], "count": 1, "verified": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("noun", "action", "rule"), [("domain", "http_post", "j.example.com"), ("path", "file_write", "j/*")]
)
def test_the_documents_of_learned_rules_are_as_declared(gatectl: Gatectl, noun: str, action: str, rule: str) -> None:
    assert ask(gatectl, f"{noun}s add", action, rule)[noun] == rule
    assert rule in [one[noun] for one in ask(gatectl, f"{noun}s list", "--action", action)[f"{noun}s"]]
    ask(gatectl, f"{noun}s remove", action, rule)
    ask(gatectl, f"{noun}s clear", "--action", action, "--yes")


def test_the_documents_of_policy_are_as_declared(gatectl: Gatectl) -> None:
    assert ask(gatectl, "policy grant", "j", "text_digest", "spin")["actions"] == ["spin", "text_digest"]
    ask(gatectl, "policy show PRINCIPAL", "j")
    ask(gatectl, "policy show")
    assert ask(gatectl, "policy revoke", "j", "spin", "text_digest")["actions"] == []
    ask(gatectl, "allowlist add", "payment_transfer", "j")
    assert ask(gatectl, "allowlist list")["allowlist"]["payment_transfer"] == ["j"]
    ask(gatectl, "allowlist remove", "payment_transfer", "j")


def test_the_documents_of_thresholds_and_caps_are_as_declared(gatectl: Gatectl) -> None:
    pay, bound = ("payment_transfer", "/amount_cents"), ("--hold-above", "1e6")
    assert ask(gatectl, "policy thresholds set", *pay, *bound)["pointer"] == "/amount_cents"
    ask(gatectl, "policy thresholds set", "payment_transfer", "/currency", "--deny-unless-in", 'EUR,5,"7"')
    listed = ask(gatectl, "policy thresholds list", "payment_transfer")["thresholds"]
    assert [one.get("deny_unless_in", one.get("hold_above")) for one in listed] == [1000000, ["EUR", 5, "7"]]
    assert ask(gatectl, "policy thresholds clear", "payment_transfer")["pointer"] is None
    ask(gatectl, "policy caps set", *pay, "--per", "all", "--window", "60", "--deny-above", "5.5")
    (cap,) = ask(gatectl, "policy caps list", "payment_transfer")["caps"]
    assert (cap["deny_above"], cap["used"]) == (5.5, [])
    ask(gatectl, "policy caps clear", *pay)
    ask(gatectl, "policy caps set", *pay, "--per", "all", "--window", "60", "--deny-above", "1234567890123.456")
    ask(gatectl, "policy thresholds set", *pay, "--deny-above", "9007199254740991")
    assert "denied above 1234567890123.456 " in gatectl.done("policy", "caps").out
    assert "denied above 9007199254740991\n" in gatectl.done("policy", "thresholds").out
    for name in ("caps", "thresholds"):
        ask(gatectl, f"policy {name} clear", *pay)


def test_the_documents_of_standing_approvals_are_as_declared(gatectl: Gatectl, agent: AgentClient) -> None:
    terms = ("--principal", "dev:anonymous", "--until", "2h", "--max-calls", "1", "--where", "/amount_cents<=20000")
    where = ("--where", "/currency in EUR,USD", "--where", "/amount_cents>=1")
    added = ask(gatectl, "approvals standing add", "payment_transfer", *terms, *where)
    assert [one["value"] for one in added["where"]] == [20000, ["EUR", "USD"], 1]
    paid = agent.execute("payment_transfer", {"to": "acct-7", "amount_cents": 19_999, "currency": "EUR"})
    assert isinstance(paid, Executed)
    (listed,) = ask(gatectl, "approvals standing list")["standing"]
    assert (listed["standing_id"], listed["calls"], listed["max_calls"]) == (added["standing_id"], 1, 1)
    shown = gatectl.done("approvals", "standing").out
    assert "1 of 1" in shown
    assert "/amount_cents <= 20000 and" in shown
    for words in (("why", paid.receipt_id), ("receipts", "show", paid.receipt_id)):
        assert f"the standing approval {added['standing_id']}" in gatectl.done(*words).out
    assert ask(gatectl, "approvals standing revoke", added["standing_id"][-8:])["calls"] == 1


def test_the_documents_of_an_export_are_as_declared(gatectl: Gatectl, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    told = ask(gatectl, "audit export", "--out", str(file))
    assert told == {"file": str(file), "format": "jsonl", "events": len(file.read_text().splitlines())}


def test_the_documents_of_calls_are_as_declared(gatectl: Gatectl, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"text": "hello"}')
    assert ask(gatectl, "execute", "text_digest", "--request", str(request))["output"]["bytes"] == 5
    request.write_text('{"to": "acct-7", "amount_cents": 28000, "currency": "EUR"}')
    ask(gatectl, "execute, held", "payment_transfer", "--request", str(request), code=3)
    assert ask(gatectl, "calls")["calls"] == []  # each of these commands has a key of its own


def test_the_documents_of_keys_and_contexts_are_as_declared(empty: Gatectl, tmp_path: Path) -> None:
    made = ask(empty, "keys new", str(tmp_path / "bob.pem"), "--operator", "bob")
    assert (tmp_path / "bob.key").read_text().startswith("key-bob-")
    assert made["operator_key_file"] == str(tmp_path / "bob.key")
    ask(empty, "context set", "x", "--address", "http://127.0.0.1:1")


def test_the_documents_of_the_files_of_hosts_are_as_declared(empty: Gatectl, tmp_path: Path) -> None:
    user = empty.with_environment(HOME=str(tmp_path))
    for command in ("mcp install", "mcp uninstall"):
        assert ask(user, command, "cursor")["state"] == "changed"
    assert ask(user, "mcp install --list")[0]["state"] == "absent"


def test_the_documents_of_ending_everything_are_as_declared(gatectl: Gatectl) -> None:
    epochs = ask(gatectl, "revoke-all", "--yes")
    assert epochs["current_epoch"] == epochs["previous_epoch"] + 1


def test_every_row_of_the_manual_is_checked(gate: Gateway) -> None:
    assert set(SHAPES) - {"drain"} == seen, "run the whole file; drain has a gateway of its own in test_draining.py"
