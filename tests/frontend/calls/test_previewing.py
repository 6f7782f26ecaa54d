"""Previews over a whole front and a real notary: the decision, the effect, the evidence, and nothing else."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontend.errors import GateError
from frontend.notary.errors import NotaryUnavailable
from ipc.configuration.quorum import QuorumRule
from ipc.settings import ApprovalSettings
from tests.support.coded import Coded
from tests.support.front_core import DENY, DIGEST, HOLD, Core, action, front_core, refuses, registry_of
from tests.support.held_calls import filing

SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
PAY = action(
    "pay", description="Refunds an invoice.", required_imports=["http"], declared_side_effects=["http_write"],
    egress={"profile": "direct_allowlist", "allowed_domains": ["billing.example"]},
    io={"max_request_bytes": 64, "request_schema": SCHEMA},
    template={"method": "POST", "url_template": "https://billing.example/invoices/{id}/refunds",
              "headers": {"Accept": "application/json"}, "body_template": {"invoice": "{id}"}},
    secrets=[{"name": "billing_token", "inject": {"header": "Authorization", "format": "Bearer {value}"}},
             {"name": "tenant", "inject": {"query": "tenant"}}],
)  # fmt: skip
SENDS = {
    "method": "POST", "url": "https://billing.example/invoices/inv_7/refunds?tenant=<secret tenant>",
    "body": '{"invoice":"inv_7"}',
    "headers": {
        "Accept": "application/json", "Content-Type": "application/json",
        "Authorization": "Bearer <secret billing_token>",
    },
}  # fmt: skip

pytestmark = pytest.mark.front(action(preview=True), action("private"), PAY | {"preview": True})


async def by_operator(core: Core, action_id: str = "pay", **more: Any) -> tuple[int, Any]:
    asked = {"principal": "billing-agent", "request": {"id": "inv_7"}} | more
    return await core.operate("POST", f"/v1/admin/actions/{action_id}/preview", asked)


async def by_agent(core: Core, action_id: str = "echo", body: Any = None, **more: Any) -> tuple[int, Any]:
    agent = await core.agent(**more)
    answer = await agent.send("POST", f"/v1/actions/{action_id}/preview", {"n": 1} if body is None else body)
    return answer.status, msgspec.json.decode(answer.body)


async def previews(core: Core) -> list[dict[str, Any]]:
    return [event for event in await core.events() if event["event_type"] != "LeaseIssued"]


async def test_an_operator_sees_the_decision_and_the_request_with_secrets_by_name(core: Core) -> None:
    status, body = await by_operator(core)
    assert (status, body["decision"], body["rule"], body["principal"]) == (200, "allow", "allow", "billing-agent")
    assert "deny_reason" not in body
    assert body["sends"] == SENDS
    assert body["shown"]["approved_targets"] == ["POST https://billing.example/invoices/inv_7/refunds"]
    assert body["shown"]["description"] == "Refunds an invoice."
    (event,) = await previews(core)
    told = {name: event.get(name) for name in ("event_type", "decision", "principal", "supposed_principal", "trace_id")}
    assert told == {
        "event_type": "ActionPreviewed", "decision": "allow", "principal": "operator:op",
        "supposed_principal": "billing-agent", "trace_id": body["trace_id"],
    }  # fmt: skip
    assert (event["action_id"], event["policy_rule"], "session_id" in event) == ("pay", "allow", False)


async def test_a_preview_shows_what_an_operator_is_shown_once_the_same_call_is_held(core: Core) -> None:
    core.policy.answer = HOLD
    agent = await core.agent(3)
    answer = await agent.send("POST", "/v1/actions/pay/preview", {"id": "inv_7"})
    preview = msgspec.json.decode(answer.body)
    _, held = await agent.call("pay", {"id": "inv_7"})
    _, detail = await core.operate("GET", f"/v1/approvals/{held['approval_id']}")
    assert preview["decision"] == "hold"
    of_the_preview = preview["shown"] | {"trace_id": detail["trace_id"]}
    assert of_the_preview == {name: detail[name] for name in preview["shown"]}
    of_the_hold = {
        "approval_id",
        "session_id",
        "created_at",
        "expires_at",
        "plan_hash",
        "shown_hash",
        "state",
        "status",
    }
    assert {name for name in detail if detail[name] is not None} - set(preview["shown"]) == of_the_hold


async def test_a_preview_of_a_call_that_would_be_held_shows_the_approvals_that_it_would_need(tmp_path: Path) -> None:
    several = ApprovalSettings(quorum=(QuorumRule(action_id="echo", count=2, groups={"finance": 1}),))
    async with front_core(tmp_path, action(preview=True), approvals=several) as core:
        _, allowed = await by_agent(core)
        core.policy.answer = HOLD
        _, held = await by_agent(core)
        _, seen = await core.operate("POST", "/v1/admin/actions/echo/preview", {"principal": "x", "request": {"n": 1}})
        core.policy.answer = DENY
        _, denied = await by_agent(core)
    assert held["shown"]["quorum"] == seen["shown"]["quorum"] == {"count": 2, "groups": {"finance": 1}}
    assert "quorum" not in {**allowed["shown"], **denied["shown"]}, "it would not be held"


async def test_a_preview_costs_no_budget_and_leaves_neither_a_hold_nor_a_run(core: Core) -> None:
    agent = await core.agent(1)
    for answer in (HOLD, DENY):
        core.policy.answer = answer
        assert (await agent.send("POST", "/v1/actions/echo/preview", {"n": 1})).status == 200
    assert await core.remaining(agent) == 1
    assert await core.unresolved() == 0
    _, listed = await core.operate("GET", "/v1/approvals")
    assert listed["total"] == 0
    assert [(one["event_type"], one["decision"]) for one in await previews(core)] == [
        ("ActionPreviewed", "deny"), ("ActionPreviewed", "pending_approval"),
    ]  # fmt: skip


async def test_a_secret_of_another_host_is_not_shown_as_sent(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["host"], "properties": {"host": {"type": "string"}}}
    some_host = PAY | {
        "egress": {"profile": "direct_allowlist", "allowed_domains": ["a.example.com", "b.example.com"]},
        "io": {"request_schema": schema}, "template": {"method": "POST", "url_template": "https://{host}/x"},
        "secrets": [{"name": "t", "domains": ["a.example.com"], "inject": {"header": "Authorization"}}],
    }  # fmt: skip
    async with front_core(tmp_path, some_host) as core:
        shown = [(await by_operator(core, request={"host": f"{name}.example.com"}))[1]["sends"] for name in "ab"]
        assert ["Authorization" in sends["headers"] for sends in shown] == [True, False]


async def test_an_agent_previews_as_itself_only_where_the_manifest_lets_it(core: Core) -> None:
    status, body = await by_agent(core)
    assert (status, body["decision"], body["principal"], body["sends"]) == (200, "allow", "dev:anonymous", None)
    status, body = await by_agent(core, "private")
    assert (status, body["error"]) == (403, "policy_denied")
    assert "preview: true" in body["deny_reason"]
    refused, allowed = await previews(core)
    assert (allowed["principal"], allowed["decision"], "supposed_principal" in allowed) == (
        "dev:anonymous",
        "allow",
        False,
    )
    assert (refused["action_id"], refused["decision"], refused["error_code"]) == ("private", "deny", "policy_denied")


async def test_a_denied_call_is_previewed_with_its_rule_and_reason(core: Core) -> None:
    core.policy.answer = DENY
    status, body = await by_operator(core)
    assert (status, body["decision"], body["rule"], body["deny_reason"]) == (200, "deny", "acl", "not you")
    assert body["sends"] == SENDS
    (event,) = await previews(core)
    assert (event["decision"], event["policy_rule"], event["deny_reason"]) == ("deny", "acl", "not you")


async def test_a_call_that_is_denied_before_there_is_a_plan_has_nothing_to_show(core: Core, tmp_path: Path) -> None:
    core.services.configuration.current.registry = registry_of(tmp_path / "filing", filing())
    status, body = await by_operator(core, "echo", request={"path": "secret/x"})
    assert (status, body["decision"], body["rule"], body["shown"], body["sends"]) == (200, "deny", None, None, None)
    assert body["deny_reason"] == "the action's manifest denies this path"


@pytest.mark.parametrize(
    ("action_id", "request_body", "status", "code"),
    [
        ("pay", {"id": 7}, 422, "schema_violation"),
        ("pay", {"id": "x" * 99}, 413, "body_too_large"),
        ("nothing", {}, 404, "action_not_found"),
    ],
)
async def test_a_refusal_of_a_preview_is_that_of_the_call_and_is_in_evidence(
    core: Core, action_id: str, request_body: Any, status: int, code: str
) -> None:
    assert await by_operator(core, action_id, request=request_body) == (status, Coded(code))
    (event,) = await previews(core)
    assert (event["event_type"], event["decision"], event["error_code"]) == ("ActionPreviewed", "deny", code)
    assert ("action_id" in event) is (code != "action_not_found")


async def test_an_untrusted_module_and_a_policy_that_is_down_refuse_a_preview(core: Core, tmp_path: Path) -> None:
    core.policy.answer = GateError("policy_engine_unavailable")
    assert (await by_operator(core))[0] == 503
    doubted = action("pay", provider_module_digest=DIGEST)
    core.services.configuration.current.registry = registry_of(tmp_path / "doubted", doubted, verdict="mismatch")
    assert await by_operator(core) == (403, Coded("action_digest_mismatch"))
    assert [one["decision"] for one in await previews(core)] == ["deny", "error"]


async def test_a_preview_of_a_session_without_calls_left_is_refused_as_the_call_is(core: Core) -> None:
    assert await by_agent(core, max_calls=0) == (403, Coded("budget_exhausted"))


async def test_no_preview_is_answered_without_its_event(core: Core) -> None:
    core.client.faults["WriteEvent"] = refuses(NotaryUnavailable("the disk is full"))
    assert await by_operator(core) == (503, Coded("evidence_store_unavailable"))


async def test_a_proof_serves_one_preview(core: Core) -> None:
    agent = await core.agent()
    first = await agent.send("POST", "/v1/actions/echo/preview", {"n": 1}, jti="once")
    second = await agent.send("POST", "/v1/actions/echo/preview", {"n": 1}, jti="once")
    assert (first.status, second.status) == (200, 401)


async def test_the_scopes_of_the_form_are_those_of_the_supposed_lease(core: Core) -> None:
    await by_operator(core, scopes=["tools:call", "billing:write"])
    assert core.policy.questions[-1].scopes == ("tools:call", "billing:write")
    assert await by_operator(core, principal="*") == (400, Coded("invalid_input"))
