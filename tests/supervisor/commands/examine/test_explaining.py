"""`gateway policy explain` of a call: its question is made of configuration, manifests and what the ledger has."""

import json
from pathlib import Path
from typing import Any

import pytest

from ipc.process.exits import Exit
from tests.notary.running import Running
from tests.notary.samples import record_call
from tests.support.checked import gateway, whole_configuration

PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}
MAPPING = """
[identity.peercred.principals.1234]
principal = "billing"
owner = "team-billing"
scopes = ["tools:call", "reports:read"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole configuration in gateway.toml, and a request for a payment."""
    made = tmp_path_factory.mktemp("gate")
    file = whole_configuration(made)
    file.write_text(file.read_text() + MAPPING)
    data = made / "policy" / "data.json"
    acl = {"billing": {"actions": ["payment_transfer"], "sinks": ["http_write"]}}
    data.write_text(json.dumps(json.loads(data.read_text()) | {"acl": acl}))
    (made / "request.json").write_text(json.dumps(PAYMENT))
    (made / "state").mkdir(mode=0o700, exist_ok=True)
    return made


def explained(folder: Path, *arguments: str) -> dict[str, Any]:
    done = gateway(folder, "policy", "explain", "--config", "gateway.toml", *arguments, "--json")
    assert done.returncode == Exit.OK, done.stdout + done.stderr
    explanation: dict[str, Any] = json.loads(done.stdout)
    return explanation


def refusal(folder: Path, *arguments: str) -> str:
    done = gateway(folder, "policy", "explain", "--config", "gateway.toml", *arguments)
    assert done.returncode in {Exit.CONFIG, Exit.USAGE}
    return done.stdout + done.stderr


BILLING = ("--principal", "billing", "--action", "payment_transfer")


def test_a_call_that_was_never_made_is_explained_from_mapping_manifest_and_request(folder: Path) -> None:
    explanation = explained(folder, *BILLING, "--request", "request.json", "--calls-remaining", "7")
    asked = explanation["input"]
    assert (asked["owner"], asked["scopes"]) == ("team-billing", ["tools:call", "reports:read"])
    assert (asked["action_risk_level"], asked["requested_secrets"]) == ("critical", ["bank_token"])
    assert asked["targets"] == ["POST http://upstream.gateway.test/v1/transfers"]
    assert asked["budgets_before"] == {"calls_remaining": 7}
    assert explanation["decision"]["rule"] == "hold_high_risk"
    assert any("scope" in sentence for sentence in explanation["assumed"])


def test_nothing_is_explained_by_manifests_that_have_problems(folder: Path) -> None:
    wrong = folder / "actions" / "wrong.yaml"
    wrong.write_text("action_id: wrong\n")
    try:
        said = refusal(folder, *BILLING, "--request", "request.json")
    finally:
        wrong.unlink()
    assert "the manifests have problems, and gateway check tells all of them: " in said
    assert "wrong.yaml" in said


def test_sinks_that_stand_in_the_file_are_believed_as_little_as_a_gateway_believes_them(folder: Path) -> None:
    data = folder / "policy" / "data.json"
    before = data.read_text()
    entry = {"actions": ["payment_transfer"], "sinks": []}
    data.write_text(json.dumps(json.loads(before) | {"acl": {"billing": entry}}))
    try:
        explanation = explained(folder, *BILLING, "--request", "request.json")
    finally:
        data.write_text(before)
    assert explanation["decision"]["allow"]
    assert explanation["decision"]["allowed_sinks"] == ["http_write"]


def test_assumptions_are_printed(folder: Path) -> None:
    done = gateway(folder, "policy", "explain", "--config", "gateway.toml", "--principal", "who", "--action", "spin")
    assert done.returncode == Exit.OK
    assumed = done.stdout.partition("\nassumed:\n")[2]
    assert "The request is {}." in assumed
    assert "No identity mapping names this principal" in assumed


def test_a_call_that_policy_would_never_see_is_no_question(folder: Path) -> None:
    assert "schema_violation (/to: is missing)" in refusal(folder, *BILLING)
    assert "Did you mean payment_transfer?" in refusal(folder, "--principal", "p", "--action", "payment_transfr")
    assert "--principal and --action go together" in refusal(folder, "--principal", "p")
    assert "give one of them" in refusal(folder, *BILLING, "--policy", "policy")
    assert "cannot be read" in refusal(folder, *BILLING, "--request", "nowhere.json")
    for number in ("-1", "9007199254740992", "x"):
        assert "--calls-remaining: " in refusal(folder, *BILLING, "--calls-remaining", number)
    (folder / "long.json").write_text((folder / "request.json").read_text() + " " * 65536)
    assert "body_too_large (max_request_bytes of the action)" in refusal(folder, *BILLING, "--request", "long.json")


@pytest.fixture(scope="module")
def trace_id(folder: Path) -> str:
    """Explain a call that stands in the ledger."""
    made = explained(folder, *BILLING, "--request", "request.json")["input"]
    notary = Running(folder / "state")
    try:
        record_call(
            notary.front, action_id="payment_transfer", principal="billing", request_hash=made["request_hash"],
            budgets_before={"calls_remaining": 3}, policy_rule="allow", policy_version="of-then",
            action_version="0.9.0",
        )  # fmt: skip
        return str(notary.events()[-1]["trace_id"])
    finally:
        notary.close()


def test_a_call_that_was_made_is_explained_by_the_policy_of_today_beside_what_was_decided(
    folder: Path, trace_id: str
) -> None:
    explanation = explained(folder, "--trace", trace_id, "--request", "request.json")
    assert explanation["input"]["principal"] == "billing"
    assert explanation["input"]["budgets_before"] == {"calls_remaining": 3}
    assert explanation["decision"]["rule"] == "hold_high_risk"
    assert "rule allow, policy of-then" in explanation["assumed"][0]
    assert any("had version 0.9.0 then, and has 1.0.0 now" in sentence for sentence in explanation["assumed"])


def test_another_request_than_that_of_the_call_is_refused(folder: Path, trace_id: str) -> None:
    (folder / "other.json").write_text(json.dumps(PAYMENT | {"amount_cents": 1}))
    assert "this is another request" in refusal(folder, "--trace", trace_id, "--request", "other.json")


def test_a_trace_that_the_ledger_has_not_is_said_to_be_none(folder: Path, trace_id: str) -> None:
    assert "has no call with the trace 'trc_none'" in refusal(folder, "--trace", "trc_none")
