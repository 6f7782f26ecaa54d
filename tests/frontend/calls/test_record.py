"""The event and the log line of a call: everything that was known when it ended, and nothing more."""

from pathlib import Path
from typing import Any

import jwt

from frontend.calls.record import MAX_ACTION_ID, CallRecord
from frontend.telemetry.weakened import Weakened
from ipc.settings import IdentitySettings, PrincipalMapping
from tests.support.front_core import DENY, DIGEST, HOLD, Agent, Core, action, front_core, registry_of
from tests.support.logs import capture_logs

USERS = IdentitySettings(principals={"1004": PrincipalMapping("billing-agent", owner="team-billing")})
ACTION = {
    "action_version": "1.0.0", "provider_module_digest": DIGEST, "risk_level": "low", "trust_verdict": "digest_ok",
}  # fmt: skip
OF_EVERY_EVENT = {"event_id", "event_type", "timestamp", "trace_id", "prev_hash", "dev_mode"}


async def lease(core: Core) -> tuple[Agent, dict[str, Any]]:
    """An agent of a mapped user with three calls, and what every event of its calls tells of it."""
    agent = await core.agent(3, uid=1004)
    claims = jwt.decode(agent.token, options={"verify_signature": False})
    who = {
        "principal": "billing-agent", "owner": "team-billing", "session_id": agent.session_id,
        "lease_jti": claims["jti"], "identity_method": "peercred", "action_id": "echo",
    }  # fmt: skip
    return agent, who


async def newest(core: Core) -> dict[str, Any]:
    event = (await core.events())[0]
    return {name: value for name, value in event.items() if name not in OF_EVERY_EVENT}


def remaining(calls: int) -> dict[str, int]:
    return {"calls_remaining": calls}


async def test_an_event_tells_what_was_known_where_its_call_ended(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0, identity=USERS) as core:
        agent, who = await lease(core)
        await agent.call(body={"m": 1})
        refused = {"decision": "deny", "error_code": "schema_violation"}
        event = await newest(core)
        del event["reason"]
        who["key_thumbprint"] = event["key_thumbprint"]
        assert len(who["key_thumbprint"]) == 43
        assert event == who | ACTION | refused
        core.policy.answer = DENY
        await agent.call()
        event = await newest(core)
        request_hash = event["request_hash"]
        policy = {"policy_version": "p1", "policy_rule": "acl", "allowed_sinks": []}
        denied = {"decision": "deny", "error_code": "policy_denied", "deny_reason": "not you"}
        known = who | ACTION | {"request_hash": request_hash, "budgets_before": remaining(3)}
        assert event == known | policy | denied
        core.policy.answer = HOLD
        held = (await agent.call())[1]
        event = await newest(core)
        assert event.pop("approval_id") == held["approval_id"]
        pending = {"decision": "pending_approval", "policy_rule": "hold", "budgets_after": remaining(2)}
        assert event == known | policy | pending
        core.services.configuration.current.registry = registry_of(tmp_path / "other", action(), verdict="missing")
        await agent.call()
        unregistered = {"decision": "deny", "error_code": "action_not_registered", "trust_verdict": "not_registered"}
        assert await newest(core) == who | ACTION | unregistered


async def test_an_event_of_a_held_call_tells_what_its_plan_does(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0, identity=USERS) as core:
        agent, who = await lease(core)
        core.policy.answer = HOLD
        held = (await agent.call())[1]
        core.clock.ahead = 301
        await core.services.upkeep.expiry.expire()
        assert await newest(core) == who | ACTION | {
            "request_hash": held["request_hash"], "policy_version": "p1", "policy_rule": "hold", "decision": "deny",
            "approval_id": held["approval_id"], "reason": "five minutes without a decision",
        }  # fmt: skip


async def test_the_line_of_a_call_says_whose_it_was_and_how_it_ended_and_warns_of_errors_alone(tmp_path: Path) -> None:
    async with front_core(tmp_path, action(), action("die"), identity=USERS) as core:
        agent, _ = await lease(core)
        with capture_logs() as lines:
            await agent.call()
            await agent.call("die")
            core.policy.answer = DENY
            await agent.call()
            await core.ask("POST", "/v1/actions/echo/execute", {"n": 1})
        told = [one for one in lines if "duration_ms" in one]
        assert [(one["log_level"], one["decision"], one["action_id"], one["principal"]) for one in told] == [
            ("info", "allow", "echo", "billing-agent"), ("warning", "error", "die", "billing-agent"),
            ("info", "deny", "echo", "billing-agent"), ("info", "deny", "echo", "-"),
        ]  # fmt: skip
        assert [one.get("code") for one in told] == [
            None, "action_execution_failed", "policy_denied", "missing_auth_header",
        ]  # fmt: skip
        assert ["cause" in one for one in told] == [False, True, False, True]
        traces = [event["trace_id"] for event in reversed(await core.events(event_type="ActionCall"))]
        assert [one["trace_id"] for one in told] == traces
        assert all(0 <= one["duration_ms"] < 60_000 for one in told)


def test_the_id_of_an_action_is_cut_to_256_characters_and_is_no_id_then() -> None:
    for length, wanted in ((256, "a" * 256), (257, "a" * 256 + "…")):
        assert CallRecord("a" * length, Weakened()).action_id == wanted
    assert MAX_ACTION_ID == 256
