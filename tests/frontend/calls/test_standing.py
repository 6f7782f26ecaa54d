"""Calls that run by a standing approval, from the operator's signature to the evidence, over one front."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.configuration.quorum import Quorum, QuorumRule
from ipc.operations.evidence import ShowReceipt
from ipc.operations.standing import Lifted
from ipc.settings import ApprovalSettings, OperatorSettings
from tests.frontend.api.handlers.test_value_rules import paid
from tests.support.front_core import DENY, HOLD, Core, action, front_core, signed
from tests.support.held_calls import reaching
from tests.support.policed import policed
from tests.support.proofs import Key
from tests.support.standing_approvals import signed_standing

STANDING = "/v1/admin/standing"
NAMES = {"ada": ("approve",), "eve": ("read",), "bob": ("approve", "read", "administer")}
KEYS = {name: Key() for name in NAMES}
API = {name: f"key-{name}-{'0' * 32}" for name in NAMES}
OPERATORS = tuple(
    OperatorSettings(
        name, dpop_jkt=KEYS[name].jkt, api_key=API[name], roles=roles, owner="bob@example" if name == "bob" else None
    )
    for name, roles in NAMES.items()
)
OPEN = {"max_request_bytes": 8192, "request_schema": {"type": "object"}}
PAY = action("pay", policy_input=["/amount"], io=OPEN)
OTHER = action("other", io=OPEN)


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    async with front_core(tmp_path, PAY, OTHER, operators=OPERATORS) as front:
        front.policy.answer = HOLD
        yield front


async def ask(core: Core, name: str, method: str, path: str, body: object = b"") -> tuple[int, Any]:
    answer = await core.ask(method, path, body, signed(KEYS[name], method, path, API[name], now=core.clock.right))
    return answer.status, msgspec.json.decode(answer.body)


def text(core: Core, name: str = "ada", **terms: Any) -> str:
    known: dict[str, Any] = {"aud": ["http://gate.test", "gate.test"], "action_id": "pay", "principal": "dev:anonymous"}
    return signed_standing(KEYS[name], **known | {"operator": name, "now": core.clock.right} | terms)


async def add(core: Core, name: str = "ada", **terms: Any) -> tuple[int, Any]:
    return await ask(core, name, "POST", STANDING, {"signature": text(core, name, **terms)})


async def added(core: Core, **terms: Any) -> str:
    status, answer = await add(core, **terms)
    assert status == 200, answer
    return str(answer["standing_id"])


async def test_a_covered_call_runs_and_its_event_and_receipt_name_the_standing_approval(core: Core) -> None:
    assert await paid(core) == 202
    signature = text(core, max_calls=5)
    status, view = await ask(core, "ada", "POST", STANDING, {"signature": signature})
    assert (status, view["operator"], view["calls"], view["max_calls"]) == (200, "ada", 0, 5)
    assert await paid(core, 2) == 200
    event = (await core.events(event_type="ActionCall"))[0]
    assert (event["decision"], event["policy_rule"], event["standing_id"]) == ("allow", "hold", view["standing_id"])
    assert "approval_id" not in event
    told = await core.real.ask(ShowReceipt(event["receipt_id"]))
    assert told is not None
    receipt = msgspec.json.decode(told.receipt)
    assert (receipt["standing_id"], receipt["standing_signature"]) == (view["standing_id"], signature)
    status, listed = await ask(core, "eve", "GET", STANDING)
    assert (status, listed["origin"]) == (200, "gate.test")
    assert listed["standing"] == [view | {"calls": 1}]


async def test_a_preview_says_which_standing_approval_would_let_the_call_run_and_counts_nothing(core: Core) -> None:
    path = "/v1/admin/actions/pay/preview"
    asked = {"principal": "dev:anonymous", "request": {"amount": 7}}
    assert (await ask(core, "eve", "POST", path, asked))[1]["decision"] == "hold"
    standing_id = await added(core, max_calls=1, where=[{"pointer": "/amount", "op": "==", "value": 7}])
    for _ in range(2):
        _, preview = await ask(core, "eve", "POST", path, asked)
        assert (preview["decision"], preview["rule"], preview["standing_id"]) == ("allow", "hold", standing_id)
    _, other = await ask(core, "eve", "POST", path, asked | {"request": {"amount": 8}})
    assert other["decision"] == "hold"
    assert "standing_id" not in other


async def test_a_call_that_breaks_a_condition_or_comes_after_the_revocation_is_held(core: Core) -> None:
    standing_id = await added(core, where=[{"pointer": "/amount", "op": "<=", "value": 100}])
    assert [await paid(core, amount) for amount in (100, 100.5)] == [200, 202]
    status, ended = await ask(core, "bob", "DELETE", f"{STANDING}/{standing_id}")
    assert (status, ended) == (
        200, {"standing_id": standing_id, "action_id": "pay", "principal": "dev:anonymous", "calls": 1},
    )  # fmt: skip
    assert await paid(core, 99) == 202
    assert (await ask(core, "bob", "DELETE", f"{STANDING}/{standing_id}"))[1] == {"error": "standing_not_found"}


async def test_a_denial_stays_a_denial(core: Core) -> None:
    await added(core)
    core.policy.answer = DENY
    assert await paid(core) == 403


async def test_a_call_of_several_operators_waits_for_them_and_is_approved_by_no_standing_one(tmp_path: Path) -> None:
    rule = QuorumRule(action_id="pay", count=2, groups={})
    settings: dict[str, Any] = {"operators": OPERATORS, "approvals": ApprovalSettings(quorum=(rule,))}
    async with front_core(tmp_path, PAY, **settings) as core:
        core.policy.answer = HOLD
        status, answer = await add(core)
        assert (status, answer["error"]) == (400, "invalid_input")
    async with front_core(tmp_path, PAY, operators=OPERATORS) as core:
        await added(core)
        core.policy.answer = msgspec.structs.replace(HOLD, quorum=Quorum(2))
        assert await paid(core) == 202


async def test_a_call_that_leads_to_an_unknown_place_waits_for_a_person(tmp_path: Path) -> None:
    async with front_core(tmp_path, reaching("pay"), operators=OPERATORS) as core:
        core.policy.answer = HOLD
        await added(core)
        agent = await core.agent()
        assert (await agent.call("pay", {"host": "new.example"}))[0] == 202
        _, preview = await ask(
            core, "eve", "POST", "/v1/admin/actions/pay/preview",
            {"principal": "dev:anonymous", "request": {"host": "new.example"}},
        )  # fmt: skip
        assert preview["decision"] == "hold"


async def test_holds_of_thresholds_and_caps_are_lifted_and_their_denials_stay(tmp_path: Path) -> None:
    cap = {"pointer": "/amount", "per": "all", "window_seconds": 3600, "hold_above": 100, "deny_above": 200}
    data = {"allowlist": {}, "caps": {"pay": [cap]}, "thresholds": {"pay": [{"pointer": "/amount", "hold_above": 50}]}}
    async with policed(tmp_path, PAY, data=data, operators=OPERATORS) as core:
        assert await paid(core, 60) == 202
        standing_id = await added(core)
        assert [await paid(core, amount) for amount in (61, 40, 40)] == [200, 200, 403]
        events = await core.events(event_type="ActionCall")
        assert [(one["policy_rule"], one.get("standing_id")) for one in reversed(events[:3])] == [
            ("threshold", standing_id), ("cap", standing_id), ("cap", None),
        ]  # fmt: skip


async def test_a_call_whose_standing_approval_and_right_are_over_by_then_is_not_held(core: Core) -> None:
    core.policy.answer = HOLD
    standing_id = await added(core)

    async def ends(ask_notary: Any, asked: tuple[Any], more: dict[str, Any]) -> Any:
        core.client.faults.clear()
        answer = await ask_notary(*asked, **more)
        assert isinstance(answer, Lifted)
        assert (await ask(core, "bob", "DELETE", f"{STANDING}/{standing_id}"))[0] == 200
        core.policy.answer = DENY
        return answer

    core.client.faults["Hold"] = ends
    assert await paid(core) == 403
    event = (await core.events(event_type="ActionCall"))[0]
    assert (event["decision"], event["policy_rule"], event.get("standing_id")) == ("deny", "acl", None)


REFUSED: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "of an operator who may only read": ("eve", {}, 403, "role_required"),
    "of an unknown action": ("ada", {"action_id": "none"}, 404, "action_not_found"),
    "for another gateway": ("ada", {"aud": ["http://gate.test", "other"]}, 403, "invalid_approval_signature"),
    "in another name": ("ada", {"operator": "bob"}, 403, "invalid_approval_signature"),
    "old": ("ada", {"iat": 1}, 403, "invalid_approval_signature"),
    "without an end": ("ada", {"until": 2**52}, 400, "invalid_input"),
    "about a value that is not offered": (
        "ada", {"where": [{"pointer": "/other", "op": "==", "value": 1}]}, 400, "invalid_input",
    ),
    "that compares texts": (
        "ada", {"where": [{"pointer": "/amount", "op": "<=", "value": "1"}]}, 400, "invalid_input",
    ),
}  # fmt: skip


@pytest.mark.parametrize("refused", REFUSED)
async def test_no_standing_approval_is_added(core: Core, refused: str) -> None:
    name, terms, status, code = REFUSED[refused]
    answer = await add(core, name, **terms)
    assert (answer[0], answer[1]["error"]) == (status, code)
    assert (await ask(core, "ada", "GET", STANDING))[1]["standing"] == []


async def test_the_same_text_sent_again_is_the_same_standing_approval_until_it_is_revoked(core: Core) -> None:
    signature = text(core)
    answers = [await ask(core, "ada", "POST", STANDING, {"signature": signature}) for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(await core.events(event_type="StandingApprovalAdded")) == 1
    await ask(core, "ada", "DELETE", f"{STANDING}/{answers[0][1]['standing_id']}")
    status, refused = await ask(core, "ada", "POST", STANDING, {"signature": signature})
    assert (status, refused["error"]) == (409, "too_many_standing_approvals")
