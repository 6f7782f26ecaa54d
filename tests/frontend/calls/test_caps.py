"""Caps of calls, from the request to the evidence: a real policy process and a real notary."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontend.notary.errors import NotaryUnavailable
from frontend.policy.question import Decision, Question
from tests.support.coded import Coded
from tests.support.front_core import DENY, HOLD, Core, action, refuses
from tests.support.policed import policed

PAY = action(
    "pay", preview=True, policy_input=["/amount"], io={"max_request_bytes": 8192, "request_schema": {"type": "object"}}
)  # fmt: skip


def gateway(folder: Path, data: dict[str, Any] | None = None, **limits: float) -> AbstractAsyncContextManager[Core]:
    cap = {"pointer": "/amount", "per": "principal", "window_seconds": 86_400, **limits}
    return policed(folder, PAY, data={"allowlist": {}, "caps": {"pay": [cap]}} | (data or {}))


async def paid(core: Core, amount: object) -> tuple[int, str | None]:
    agent = await core.agent()
    status, _ = await agent.call("pay", {"amount": amount})
    return status, (await core.events(event_type="ActionCall"))[0].get("policy_rule")


async def test_calls_of_all_leases_of_a_principal_are_counted_together(tmp_path: Path) -> None:
    async with gateway(tmp_path, deny_above=100) as core:
        assert [await paid(core, amount) for amount in (60, 40.0)] == [(200, "allow")] * 2
        assert await paid(core, 0.000000001) == (403, "cap")
        event = (await core.events(event_type="ActionCall"))[0]
        assert event["error_code"] == "policy_denied"
        assert event["caps"] == [
            {"pointer": "/amount", "per": "principal", "total": "100", "with_this": "100.000000001"}
        ]  # fmt: skip
        assert await paid(core, 0) == (200, "allow")


async def test_a_cap_holds_no_call_whose_right_is_revoked_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, hold_above=50) as core:
        agent = await core.agent()
        assert (await agent.call("pay", {"amount": 50}))[0] == 200
        decides = core.policy.decide

        async def revokes(question: Question) -> Decision:
            decision = await decides(question)
            core.policy.answer = DENY
            return decision

        monkeypatch.setattr(core.policy, "decide", revokes)
        assert (await agent.call("pay", {"amount": 30}))[0] == 403
        event = (await core.events(event_type="ActionCall"))[0]
        assert (event["decision"], event["error_code"], event["policy_rule"]) == ("deny", "policy_denied", "acl")


async def test_the_detail_of_a_held_call_has_its_caps_as_they_stand_until_it_ends(tmp_path: Path) -> None:
    async with gateway(tmp_path, hold_above=50.5, deny_above=200) as core:
        agent = await core.agent()
        assert (await agent.call("pay", {"amount": 50}))[0] == 200
        _, held = await agent.call("pay", {"amount": 30.25})
        path = f"/v1/approvals/{held['approval_id']}"
        cap = {"pointer": "/amount", "per": "principal", "window_seconds": 86_400, "total": "50",
               "with_this": "80.25", "hold_above": "50.5", "deny_above": "200"}  # fmt: skip
        before = (await core.operate("GET", path))[1]
        assert before["caps"] == [cap]
        assert (await agent.call("pay", {"amount": 40}))[0] == 202
        now = (await core.operate("GET", path))[1]
        assert now["caps"] == [cap | {"total": "90", "with_this": "120.25"}], "another held call counts, too"
        assert now["shown_hash"] == before["shown_hash"]
        assert (await core.operate("POST", f"{path}/deny"))[0] == 200
        assert "caps" not in (await core.operate("GET", path))[1]


async def test_the_detail_of_a_held_call_without_caps_asks_nothing_about_them(tmp_path: Path) -> None:
    async with gateway(tmp_path, {"caps": {}}) as core:
        core.policy.answer = HOLD
        agent = await core.agent()
        _, held = await agent.call("pay", {"amount": 30})
        core.client.asked.clear()
        assert "caps" not in (await core.operate("GET", f"/v1/approvals/{held['approval_id']}"))[1]
        # but for the pulses, which ask once a second
        asked = [one for one in core.client.asked if one not in ("ReadStore", "ReadLedger")]
        assert asked == ["UseProof", "GetHold"]


@pytest.mark.parametrize("amount", ["5", None, True, -1, [5], -0.5])
async def test_a_value_that_is_no_amount_is_denied(tmp_path: Path, amount: object) -> None:
    async with gateway(tmp_path, hold_above=100) as core:
        assert await paid(core, amount) == (403, "cap")
        agent = await core.agent()
        assert (await agent.call("pay", {}))[0] == 403, "a request without it"


async def test_the_allowlist_lifts_a_cap_s_hold_and_no_denial(tmp_path: Path) -> None:
    spared = {"allowlist": {"pay": {"dev:anonymous": True}}}
    async with gateway(tmp_path, spared, hold_above=10, deny_above=100) as core:
        assert await paid(core, 60) == (200, "allow")
        assert await paid(core, 60) == (403, "cap")


async def previewed(core: Core, amount: object) -> dict[str, Any]:
    asked = {"principal": "dev:anonymous", "request": {"amount": amount}}
    status, body = await core.operate("POST", "/v1/admin/actions/pay/preview", asked)
    assert status == 200, body
    return dict(body)


async def test_a_preview_is_decided_by_the_caps_and_counts_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, hold_above=50, deny_above=100) as core:
        assert await paid(core, 40) == (200, "allow")
        cap = {"pointer": "/amount", "per": "principal", "window_seconds": 86_400, "total": "40",
               "hold_above": "50", "deny_above": "100"}  # fmt: skip
        shown: dict[str, Any] = {}
        for amount, decision, rule in ((10, "allow", "allow"), (10.5, "hold", "cap"), (61, "deny", "cap")):
            shown = await previewed(core, amount)
            assert (shown["decision"], shown["rule"]) == (decision, rule)
            assert shown["caps"] == [cap | {"with_this": str(40 + amount)}]
        assert shown["deny_reason"] == "the cap on /amount would be exceeded: at most 100 in 86400 s for principal"
        assert shown["shown"]["policy_rule"] == "cap"
        event = (await core.events(event_type="ActionPreviewed"))[0]
        assert (event["decision"], event["policy_rule"], "caps" in event) == ("deny", "cap", False)
        assert await paid(core, 10) == (200, "allow"), "the previews reserved nothing"


async def test_an_explanation_is_decided_by_the_caps_and_counts_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, hold_above=50, deny_above=100) as core:
        assert await paid(core, 40) == (200, "allow")
        for amount, decision, rule in ((10, "allow", "allow"), (10.5, "pending_approval", "cap"), (61, "deny", "cap")):
            status, found = await explained(core, amount)
            assert (status, found["decision"], found["rule"]) == (200, decision, rule)
        denied = (await explained(core, 61))[1]
        assert denied["error_code"] == "policy_denied"
        assert denied["reason"] == "the cap on /amount would be exceeded: at most 100 in 86400 s for principal"
        assert await paid(core, 10) == (200, "allow"), "the explanations reserved nothing"
        core.client.faults["ReadCaps"] = refuses(NotaryUnavailable("gone", "budget"))
        assert await explained(core, 1) == (503, {"error": "budget_store_unavailable"})


async def explained(core: Core, amount: object) -> tuple[int, Any]:
    asked = {"principal": "dev:anonymous", "action_id": "pay", "request": {"amount": amount}}
    return await core.operate("POST", "/v1/admin/policy/explain", asked)


async def test_an_agent_s_preview_is_decided_alike_and_shows_no_sums(tmp_path: Path) -> None:
    async with gateway(tmp_path, hold_above=50) as core:
        agent = await core.agent()
        for amount, decision in ((50, "allow"), (51, "hold")):
            answer = await agent.send("POST", "/v1/actions/pay/preview", {"amount": amount})
            shown = msgspec.json.decode(answer.body)
            assert (shown["decision"], "caps" in shown) == (decision, False)


async def test_a_preview_whose_caps_can_not_be_read_is_refused(tmp_path: Path) -> None:
    async with gateway(tmp_path, deny_above=50) as core:
        core.client.faults["ReadCaps"] = refuses(NotaryUnavailable("gone", "budget"))
        asked = {"principal": "dev:anonymous", "request": {"amount": 1}}
        status, body = await core.operate("POST", "/v1/admin/actions/pay/preview", asked)
        assert (status, body["error"]) == (503, "budget_store_unavailable")
        assert (await core.events(event_type="ActionPreviewed"))[0]["error_code"] == "budget_store_unavailable"


@pytest.mark.parametrize(("operation", "limits"), [("Open", {"deny_above": 50}), ("Hold", {"hold_above": 0})])
async def test_a_call_whose_caps_can_not_be_counted_is_refused_by_name_and_does_not_run(
    tmp_path: Path, operation: str, limits: dict[str, Any]
) -> None:
    async with gateway(tmp_path, **limits) as core:
        core.client.faults[operation] = refuses(NotaryUnavailable("Redis: gone", "budget"))
        assert await (await core.agent()).call("pay", {"amount": 1}) == (503, Coded("budget_store_unavailable"))
        assert (await core.events(event_type="ActionCall"))[0]["error_code"] == "budget_store_unavailable"
        del core.client.faults[operation]
        assert (await paid(core, 1))[0] in (200, 202)
