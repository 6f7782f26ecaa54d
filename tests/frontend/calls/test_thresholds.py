"""Calls that are decided by their values: over rules in a real policy process, and by thresholds beside them."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.front_core import DENY, HOLD, Core, action
from tests.support.policed import DATA, policed

PAY = action(
    "pay", policy_input=["/amount", "/currency"], io={"max_request_bytes": 8192, "request_schema": {"type": "object"}}
)
RULES = {
    "pay": [
        {"pointer": "/amount", "hold_above": 100}, {"pointer": "/amount", "deny_above": 1000},
        {"pointer": "/currency", "deny_unless_in": ["EUR", "USD"]},
    ]
}  # fmt: skip
BESIDE: dict[str, Any] = {"allowlist": {}, "thresholds": RULES}

pytestmark = pytest.mark.policed(PAY, action("echo"), data=BESIDE)


async def paid(core: Core, amount: object, **more: object) -> tuple[int, str | None]:
    agent = await core.agent()
    status, _ = await agent.call("pay", {"amount": amount, "currency": "EUR"} | more)
    return status, (await core.events(event_type="ActionCall"))[0].get("policy_rule")


async def test_a_call_is_allowed_held_or_denied_by_what_it_says(core: Core) -> None:
    assert await paid(core, 1e2) == (200, "allow")
    assert await paid(core, 100.5) == (202, "threshold")
    assert await paid(core, "5") == (202, "threshold")
    assert await paid(core, 1000.01) == (403, "threshold")
    assert await paid(core, 1, currency="eur") == (403, "threshold")
    event = (await core.events(event_type="ActionCall"))[0]
    assert event["error_code"] == "policy_denied"
    assert event["deny_reason"] == 'denied by a threshold of pay: /currency is not among ["EUR","USD"]'


async def test_a_held_plan_has_the_values_that_it_was_decided_by(core: Core) -> None:
    agent = await core.agent()
    _, held = await agent.call("pay", {"amount": 3e2, "currency": "EUR"})
    _, shown = await core.operate("GET", f"/v1/approvals/{held['approval_id']}")
    assert shown["policy_rule"] == "threshold"
    assert (await core.operate("POST", f"/v1/approvals/{held['approval_id']}/approve"))[0] == 200
    assert core.policy.questions[-1].request == '{"/amount":300,"/currency":"EUR"}'


async def test_a_threshold_never_makes_an_answer_of_policy_milder(core: Core) -> None:
    core.policy.answer = HOLD
    assert await paid(core, 1) == (202, "hold")
    assert await paid(core, 500) == (202, "hold")
    assert await paid(core, 5000) == (403, "threshold")
    core.policy.answer = DENY
    assert await paid(core, 500) == (403, "acl")


async def test_the_allowlist_lifts_a_threshold_s_hold_and_no_denial(tmp_path: Path) -> None:
    async with policed(tmp_path, PAY, data=BESIDE | {"allowlist": {"pay": {"dev:anonymous": True}}}) as core:
        assert await paid(core, 500) == (200, "allow")
        assert await paid(core, 5000) == (403, "threshold")


@pytest.mark.parametrize("amount", [{}, [[]], ["x"] * 33, "x" * 1025])
async def test_a_value_that_policy_cannot_be_asked_about_is_422(core: Core, amount: object) -> None:
    agent = await core.agent()
    status, body = await agent.call("pay", {"amount": amount})
    assert (status, body["error"], body["reason"].partition(":")[0]) == (422, "schema_violation", "/amount")


async def test_explain_and_preview_say_what_the_threshold_would(core: Core) -> None:
    asked = {"principal": "dev:anonymous", "request": {"amount": 5000, "currency": "EUR"}}
    _, explained = await core.operate("POST", "/v1/admin/policy/explain", asked | {"action_id": "pay"})
    assert (explained["decision"], explained["rule"]) == ("deny", "threshold")
    _, preview = await core.operate("POST", "/v1/admin/actions/pay/preview", asked)
    assert (preview["decision"], preview["rule"]) == ("deny", "threshold")


REGO = """package gateway

import rego.v1

outcome := "high" if {
	input.request["/amount"] == 100
} else := "low"

decision := {
	"allow": true, "requires_approval": false, "deny_reason": "", "rule": outcome,
	"allowed_sinks": input.requested_sinks, "policy_version": data.policy_version,
}
"""


async def test_rules_read_values_and_a_remembered_decision_is_for_equal_values_alone(tmp_path: Path) -> None:
    async with policed(tmp_path, PAY, is_real=True, data=DATA | {"allowlist": {}}) as core:
        (tmp_path / "policy" / "gateway.rego").write_text(REGO)
        files = await core.services.configuration.policy_file.read()
        await core.services.configuration.policy.load(files.sources)
        for _ in range(2):
            for amount, rule in (
                (100, "high"),
                (1e2, "high"),
                ("100", "low"),
                (True, "low"),
                (1, "low"),
                ([100], "low"),
            ):
                assert await paid(core, amount) == (200, rule)
        assert core.services.policy.memo_status.entries == 5
