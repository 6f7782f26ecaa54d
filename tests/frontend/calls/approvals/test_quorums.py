"""Held calls that need several approvals, over the interface of one front and of two."""

from pathlib import Path
from typing import Any

import msgspec

from frontend.auth.operators import Operators
from ipc.configuration.quorum import QuorumRule
from ipc.reloadable import reloadable_of
from ipc.settings import ApprovalSettings
from tests.support.coded import Coded
from tests.support.front_core import Core, front_core, signed
from tests.support.held_calls import held
from tests.support.quorum_model import API, GROUPS, KEYS, operators_of

OPERATORS = operators_of(GROUPS)


def needing(count: int, **groups: int) -> dict[str, Any]:
    rule = QuorumRule(action_id="echo", count=count, groups=groups)
    return {"operators": OPERATORS, "approvals": ApprovalSettings(quorum=(rule,))}


async def ask(core: Core, name: str, method: str, path: str, body: object = b"") -> tuple[int, Any]:
    answer = await core.ask(method, path, body, signed(KEYS[name], method, path, API[name], now=core.clock.right))
    return answer.status, msgspec.json.decode(answer.body)


async def approve(core: Core, name: str, approval_id: str) -> tuple[int, Any]:
    return await ask(core, name, "POST", f"/v1/approvals/{approval_id}/approve")


async def kinds(core: Core, approval_id: str) -> list[tuple[str, str | None]]:
    events = [one for one in reversed(await core.events()) if one.get("approval_id") == approval_id]
    return [(one["event_type"], one.get("approved_by")) for one in events]


async def test_the_first_of_two_approvals_is_202_and_the_second_executes(tmp_path: Path) -> None:
    async with front_core(tmp_path, **needing(2)) as core:
        _, approval_id = await held(core)
        status, first = await approve(core, "ada", approval_id)
        assert (status, first["decision"]) == (202, "pending_approval")
        assert (first["approvals"]["given"], first["approvals"]["needed"]) == (1, 2)
        assert await approve(core, "ada", approval_id) == (409, Coded("already_approved_by_you"))
        status, detail = await ask(core, "eve", "GET", f"/v1/approvals/{approval_id}")
        assert (detail["state"], detail["quorum"]) == ("pending", {"count": 2, "groups": {}})
        assert [one["approved_by"] for one in detail["approvals"]["by"]] == ["ada"]
        status, page = await ask(core, "eve", "GET", "/v1/approvals")
        assert page["approvals"][0]["approvals"]["given"] == 1
        status, done = await approve(core, "bob", approval_id)
        assert (status, done["decision"], done["approval"]["approved_by"]) == (200, "executed", "bob")
        told = [("ActionCall", None), ("ApprovalGiven", "ada"), ("ApprovalGranted", "bob"), ("ActionCall", "bob")]
        assert await kinds(core, approval_id) == told
        (granted,) = await core.events(event_type="ApprovalGranted")
        assert [one["approved_by"] for one in granted["approvals"]] == ["ada", "bob"]
        status, receipt = await ask(core, "eve", "GET", f"/v1/receipts/{done['receipt_id']}")
        assert receipt["approval"]["quorum"] == {"count": 2, "groups": {}}
        assert [one["operator_jkt"] for one in receipt["approval"]["approvals"]] == [KEYS["ada"].jkt, KEYS["bob"].jkt]


async def test_an_operator_who_is_gone_counts_no_more_and_several_teach_no_rule(tmp_path: Path) -> None:
    async with front_core(tmp_path, **needing(2)) as core:
        _, approval_id = await held(core)
        status, body = await ask(core, "ada", "POST", f"/v1/approvals/{approval_id}/approve?learn_path=a")
        assert status == 400
        assert (await approve(core, "ada", approval_id))[0] == 202
        settings = msgspec.structs.replace(core.services.settings, operators=OPERATORS[1:])
        core.services.authentication.operators.follow(Operators(settings.operators))
        core.notary_thread.follow(reloadable_of(settings))
        status, body = await approve(core, "bob", approval_id)
        assert (status, body["approvals"]["given"]) == (202, 1)
        assert (await approve(core, "eve", approval_id))[0] == 200
