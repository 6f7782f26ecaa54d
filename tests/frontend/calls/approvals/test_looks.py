"""The cost of looking at a hold: an agent's poll, an operator's list and detail."""

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontend.calls.approvals import looks
from frontend.calls.approvals.record import ShownHold, encode, whole_of
from ipc.approvals import HeldBody
from ipc.backends.store import ApprovalRecord
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.operations.holds import GetHold
from ipc.plan import seal
from tests.support.front_core import BASE, Core, action, front_core
from tests.support.held_calls import corrupt, held
from tests.support.plans import a_plan
from tests.support.signed_approvals import signature_of


async def test_a_poll_reads_the_state_of_a_hold_and_no_plan(core: Core) -> None:
    agent, approval_id = await held(core)
    answered: list[ApprovalRecord] = []

    async def seen(ask: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        assert isinstance(args[0], GetHold)
        answered.append(await ask(*args, **more))
        return answered[-1]

    core.client.faults["GetHold"] = seen
    answer = await agent.send("GET", f"/v1/approvals/{approval_id}/poll")
    assert msgspec.json.decode(answer.body)["state"] == "pending"
    assert [record.body for record in answered] == [""]


async def test_a_large_hold_is_made_ready_to_be_shown_once_in_a_thread_and_a_small_one_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []

    def noted(approval: ApprovalRecord) -> ShownHold:
        made.append(threading.current_thread() is threading.main_thread())
        return whole_of(approval)

    monkeypatch.setattr(looks, "whole_of", noted)
    io = {"max_request_bytes": 100_000}
    async with front_core(tmp_path, action("echo", io=io), workers=0) as core:
        _, large = await held(core, text="\u0645a" * 20_000)
        _, small = await held(core)
        first, second = [await core.operate("GET", f"/v1/approvals/{large}") for _ in range(2)]
        assert first == second
        assert first[1]["request"]["text"] == "\\u0645a" * 20_000
        assert made == [False]
        statement: dict[str, Any] = {"aud": BASE, "iat": int(core.clock.right)}
        signature = signature_of(core.operator_key, first[1], decision="deny", **statement)
        status, _ = await core.operate("POST", f"/v1/approvals/{large}/deny", {"signature": signature})
        assert (status, made) == (200, [False])
        await core.operate("GET", f"/v1/approvals/{small}")
        assert made == [False, True]


async def test_a_large_hold_whose_stored_body_was_changed_is_not_shown_as_it_was(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("echo", io={"max_request_bytes": 100_000}), workers=0) as core:
        _, approval_id = await held(core, text="x" * 20_000)
        assert (await core.operate("GET", f"/v1/approvals/{approval_id}"))[0] == 200
        record = await core.real.ask(GetHold(approval_id))
        assert record is not None
        await corrupt(core, approval_id, record.body.replace("xxx", "xyx", 1))
        assert await core.operate("GET", f"/v1/approvals/{approval_id}") == (409, {"error": "plan_integrity"})


async def test_the_memory_for_large_holds_is_bounded() -> None:
    kept = looks.Looks()
    for number in range(looks.MOST_KEPT + 3):
        await kept.whole(large_hold(f"apr_{number}", 20_000))
    assert len(kept._kept) == looks.MOST_KEPT
    for number in range(3):
        await kept.whole(large_hold(f"apr_large_{number}", looks.MOST_KEPT_CHARACTERS // 2))
    assert len(kept._kept) == 1


def large_hold(approval_id: str, size: int) -> ApprovalRecord:
    plan = a_plan(request='{"text":"' + "x" * size + '"}')
    body = encode(HeldBody.of(seal(plan), IdentityOrigin("peercred"), has_budget=False))
    return ApprovalRecord(approval_id, "ses_1", "a", "sha256:11", "pending", 0.0, 300.0, body, principal="p")
