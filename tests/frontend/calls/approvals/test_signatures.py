"""Operators' signatures as a front checks them: over a real notary, which checks them again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frontend.calls.approvals.record import outcome_of
from frontend.notary.errors import NotaryUnavailable
from ipc.operations.holds import GetHold
from ipc.settings import ApprovalSettings
from tests.support.coded import Coded
from tests.support.front_core import BASE, Core, front_core, refuses
from tests.support.held_calls import corrupt, held, reaching, state_of, told
from tests.support.proofs import Key
from tests.support.signed_approvals import signature_of, tampered

REQUIRED = ApprovalSettings(require_signature=True)

pytestmark = pytest.mark.front(approvals=REQUIRED)
HELD = ("ActionCall", "pending_approval", None)


async def shown(core: Core, approval_id: str) -> dict[str, Any]:
    """The text that an operator is shown, and the front's time as `now`."""
    status, detail = await core.operate("GET", f"/v1/approvals/{approval_id}")
    assert status == 200
    return {"now": int(core.clock.right), **detail}


def signed(core: Core, detail: dict[str, Any], key: Key | None = None, **claims: Any) -> str:
    return signature_of(key or core.operator_key, detail, **({"aud": BASE, "iat": detail["now"]} | claims))


async def decide(core: Core, detail: dict[str, Any], way: str, **body: Any) -> tuple[int, Any]:
    query = "".join(f"{'&' if at else '?'}{one}" for at, one in enumerate(body.pop("query", ())))
    return await core.operate("POST", f"/v1/approvals/{detail['approval_id']}/{way}{query}", body)


async def assert_waits(core: Core, approval_id: str) -> None:
    assert await state_of(core, approval_id) == "pending"
    assert await told(core, approval_id) == [HELD]


@pytest.mark.parametrize("way", ["approve", "deny"])
async def test_no_decision_is_taken_without_a_signature_where_one_is_required(core: Core, way: str) -> None:
    _, approval_id = await held(core)
    status, answer = await decide(core, {"approval_id": approval_id}, way)
    assert (status, answer["error"]) == (403, "approval_signature_required")
    assert "gatectl" in answer["message"]
    await assert_waits(core, approval_id)


async def test_a_signed_approval_is_in_its_event_in_the_detail_and_in_the_receipt(core: Core) -> None:
    _, approval_id = await held(core)
    detail = await shown(core, approval_id)
    signature = signed(core, detail, operator="op")
    status, answer = await decide(core, detail, "approve", signature=signature)
    assert status == 200
    assert (await shown(core, approval_id))["approval_signature"] == signature
    (event,) = await core.events(event_type="ApprovalGranted")
    assert event["approval_signature"] == signature
    receipt = await core.receipt(answer["receipt_id"])
    assert (receipt["approval"]["signature"], receipt["receipt_version"]) == (signature, 2)


async def test_a_signed_denial_is_in_its_event(core: Core) -> None:
    _, approval_id = await held(core)
    detail = await shown(core, approval_id)
    signature = signed(core, detail, decision="deny", reason="too \u202e much")
    status, answer = await decide(core, detail, "deny", reason="too \u202e much", signature=signature)
    assert (status, answer["deny_reason"]) == (200, "too  much")
    (event,) = await core.events(event_type="ApprovalDenied")
    assert (event["approval_signature"], event["deny_reason"]) == (signature, "too  much")


async def test_where_none_is_required_a_decision_without_one_leaves_none(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        _, approval_id = await held(core)
        status, answer = await decide(core, {"approval_id": approval_id}, "approve", anything=1)
        assert status == 200
        assert "signature" not in (await core.receipt(answer["receipt_id"]))["approval"]
        assert "approval_signature" not in (await core.events(event_type="ApprovalGranted"))[0]


FALSE: dict[str, Callable[[Core, dict[str, Any]], Any]] = {
    "noise": lambda _, __: "nonsense",
    "by another key": lambda core, detail: signed(core, detail, Key()),
    "of another plan": lambda core, detail: signed(core, detail, plan_hash="sha256:" + "0" * 64),
    "of what was not shown": lambda core, detail: signed(core, detail, shown_hash="sha256:" + "0" * 64),
    "for another gateway": lambda core, detail: signed(core, detail, aud="http://gate.elsewhere"),
    "of another operator": lambda core, detail: signed(core, detail, operator="other"),
    "too old": lambda core, detail: signed(core, detail, iat=detail["now"] - 300),
    "of another decision": lambda core, detail: signed(core, detail, decision="deny"),
    "of another decision, turned": lambda core, detail: tampered(
        signed(core, detail, decision="deny"), decision="approve"
    ),
    "of a rule that was not asked for": lambda core, detail: signed(core, detail, learn_domain="evil.example"),
}


@pytest.mark.parametrize("is_required", [True, False])
async def test_a_signature_of_anything_else_decides_nothing(tmp_path: Path, is_required: bool) -> None:
    async with front_core(tmp_path, approvals=ApprovalSettings(is_required)) as core:
        _, approval_id = await held(core)
        detail = await shown(core, approval_id)
        for name, false in FALSE.items():
            status, answer = await decide(core, detail, "approve", signature=false(core, detail))
            assert (status, answer["error"]) == (403, "invalid_approval_signature"), name
            assert answer["message"].startswith("the signature does not fit: ")
            await assert_waits(core, approval_id)
        (told,) = await core.events(event_type="OperatorAuthFailed")
        assert (told["error_code"], told["attempts"]["operator"]) == ("invalid_approval_signature", "op")


@pytest.mark.parametrize(
    ("claims", "body"),
    [({"decision": "approve"}, {}), ({"reason": "no"}, {}), ({}, {"reason": "no"}), ({"reason": "a"}, {"reason": "b"})],
)
async def test_a_denial_is_signed_with_its_reason(tmp_path: Path, claims: dict[str, Any], body: dict[str, Any]) -> None:
    async with front_core(tmp_path) as core:
        _, approval_id = await held(core)
        detail = await shown(core, approval_id)
        signature = signed(core, detail, **{"decision": "deny"} | claims)
        status, answer = await decide(core, detail, "deny", signature=signature, **body)
        assert (status, answer["error"]) == (403, "invalid_approval_signature")
        await assert_waits(core, approval_id)


async def test_learned_rules_are_covered_by_the_operators_signature(tmp_path: Path) -> None:
    async with front_core(tmp_path, reaching(), workers=0, approvals=REQUIRED) as core:
        core.desk.start("http")
        _, approval_id = await held(core, host="new.example")
        detail = await shown(core, approval_id)
        query = ("learn_domain=NEW.example",)
        others: list[dict[str, Any]] = [{}, {"learn_domain": "new.example"}, {"learn_path": "NEW.example"}]
        for claims in others:
            status, answer = await decide(
                core, detail, "approve", signature=signed(core, detail, **claims), query=query
            )
            assert (status, answer["error"]) == (403, "invalid_approval_signature")
        signature = signed(core, detail, learn_domain="NEW.example")
        status, answer = await decide(core, detail, "approve", signature=signature, query=query)
        assert (status, answer["learned_domain"]) == (200, "new.example")
        (event,) = await core.events(event_type="ApprovalGranted")
        assert (event["reason"], event["approval_signature"]) == ("learns domain new.example", signature)


async def test_a_signature_is_used_for_one_hold_once(core: Core) -> None:
    agent, approval_id = await held(core)
    detail = await shown(core, approval_id)
    signature = signed(core, detail)
    assert (await decide(core, detail, "approve", signature=signature))[0] == 200
    assert (await decide(core, detail, "approve", signature=signature))[1] == {"error": "approval_not_found"}
    status, again = await agent.call()
    assert status == 202
    assert await decide(core, again, "approve", signature=signature) == (403, Coded("invalid_approval_signature"))


async def test_a_signed_approval_that_fails_keeps_the_signature(core: Core) -> None:
    _, approval_id = await held(core)
    detail = await shown(core, approval_id)
    core.client.faults["Open"] = refuses(NotaryUnavailable("the disk is full"))
    signature = signed(core, detail)
    answer = await decide(core, detail, "approve", signature=signature)
    assert answer[1] == {"error": "evidence_persistence_failed"}
    core.client.faults.clear()
    record = await core.real.ask(GetHold(approval_id))
    assert record is not None
    assert (record.state, outcome_of(record).approval_signature) == ("failed", signature)


async def test_a_signature_for_a_plan_that_was_changed_in_the_store_is_refused(core: Core) -> None:
    _, approval_id = await held(core)
    detail = await shown(core, approval_id)
    record = await core.real.ask(GetHold(approval_id))
    assert record is not None
    await corrupt(core, approval_id, record.body.replace('"risk_level":"low"', '"risk_level":"none"'))
    for way in ("approve", "deny"):
        status, answer = await decide(core, detail, way, signature=signed(core, detail, decision=way))
        assert (status, answer["error"]) == (409, "plan_integrity")
    assert await state_of(core, approval_id) == "pending"
