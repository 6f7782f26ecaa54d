"""Plans that no longer stand when an operator decides: out of date, changed or unreadable. None of them is executed."""

from pathlib import Path
from typing import Any

import pytest

from frontend.actions.registry import Registry
from frontend.actions.trust import Trusted
from frontend.calls.approvals.record import outcome_of
from ipc.messages.modules import ModuleVerdict
from ipc.operations.holds import GetHold
from tests.support.front_core import DIGEST, Agent, Core, front_core, lose_epoch
from tests.support.held_calls import approve, corrupt, held, reaching, state_of, template_says, told


@pytest.mark.parametrize("now", [None, "http://127.0.0.1:2"])
async def test_a_plan_never_goes_through_a_proxy_that_is_not_the_configured_one(
    tmp_path: Path, now: str | None
) -> None:
    egress = {"profile": "proxy_allowlist", "allowed_domains": ["known.example"]}
    proxied = reaching() | {"egress": egress}
    async with front_core(tmp_path, proxied, workers=0, egress_proxy_url="http://127.0.0.1:1") as core:
        _, approval_id = await held(core, host="known.example")
    async with front_core(tmp_path, *([] if now is None else [proxied]), workers=0, egress_proxy_url=now) as core:
        assert await approve(core, approval_id) == (409, {"error": "plan_integrity"})
        assert (await told(core, approval_id))[-1] == ("ActionCall", "deny", "plan_integrity")


NEITHER = ModuleVerdict(DIGEST, "ok", DIGEST)


@pytest.mark.parametrize(
    "verdict",
    [NEITHER, ModuleVerdict(DIGEST, "missing", None, "gone"), ModuleVerdict(DIGEST, "mismatch", "sha256:" + "1" * 64)],
    ids=["not trusted", "gone", "of other bytes"],
)
async def test_a_plan_whose_module_no_action_has_and_that_is_not_trusted_is_not_executed(
    core: Core, verdict: ModuleVerdict
) -> None:
    agent, approval_id = await held(core)
    core.services.configuration.current.registry = Registry()
    template_says(core, verdict)
    await refused_as_out_of_date(core, agent, approval_id)


@pytest.mark.parametrize("is_trusted", [True, False], ids=["trusted", "built in"])
async def test_a_plan_whose_module_no_action_has_any_more_is_executed_while_it_is_trusted(
    core: Core, is_trusted: bool
) -> None:
    _, approval_id = await held(core)
    trusted = Trusted(frozenset({DIGEST})) if is_trusted else Trusted()
    core.services.configuration.current.registry = Registry((), trusted)
    asked = template_says(core, ModuleVerdict(DIGEST, "ok", DIGEST, is_builtin=not is_trusted))
    status, body = await approve(core, approval_id)
    assert (status, body["action_id"]) == (200, "echo")
    assert [(one.reference, one.is_held) for one in asked] == [(DIGEST, True)]


async def test_a_module_that_can_not_be_loaded_now_leaves_the_hold_to_be_approved_later(core: Core) -> None:
    _, approval_id = await held(core)
    core.services.configuration.current.registry = Registry()
    template_says(core, ModuleVerdict(DIGEST, "refused", None, "too many loads are waiting"))
    assert await approve(core, approval_id) == (503, {"error": "overloaded"})
    assert await state_of(core, approval_id) == "pending"


async def ended_with_its_epoch(core: Core, agent: Agent, approval_id: str) -> None:
    path = f"/v1/approvals/{approval_id}"
    for verb in ("approve", "deny"):
        assert await core.operate("POST", f"{path}/{verb}") == (404, {"error": "approval_not_found"})
    assert await state_of(core, approval_id) == "expired"
    await core.services.upkeep.round()
    assert await core.remaining(agent) == 3
    assert (await told(core, approval_id))[-1] == ("ApprovalExpired", "deny", None)


async def refused_as_out_of_date(core: Core, agent: Agent, approval_id: str) -> None:
    core.clock.stop()
    assert await approve(core, approval_id) == (409, {"error": "plan_integrity"})
    assert await state_of(core, approval_id) == "failed"
    record = await core.real.ask(GetHold(approval_id))
    assert record is not None
    outcome = outcome_of(record)
    assert (outcome.claimed_by, outcome.completed_at) == ("op", core.clock.iso())
    assert await core.remaining(agent) == 3
    assert (await told(core, approval_id))[-1] == ("ActionCall", "deny", "plan_integrity")


async def test_a_plan_of_an_epoch_that_the_store_has_lost_is_not_executed(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        await core.raise_epoch()
        agent, approval_id = await held(core)
    lose_epoch(tmp_path)
    async with front_core(tmp_path) as core:
        await ended_with_its_epoch(core, agent, approval_id)


async def test_a_plan_that_the_notary_finds_out_of_date_is_not_executed(core: Core) -> None:
    """The epoch rises between this front's look and the one that counts."""
    agent, approval_id = await held(core)

    async def rises_first(operation: Any, args: Any, kwargs: Any) -> Any:
        await core.raise_epoch()
        return await operation(*args, **kwargs)

    core.client.faults["Open"] = rises_first
    await refused_as_out_of_date(core, agent, approval_id)


async def test_a_plan_of_another_epoch_than_this_front_knows_is_not_given_to_a_worker(core: Core) -> None:
    agent, approval_id = await held(core)
    core.services.authentication.known.note_epoch(1)
    await refused_as_out_of_date(core, agent, approval_id)
    assert "Open" not in core.client.asked
    (event, *_) = await core.events(event_type="ActionCall")
    assert event["reason"] == "epoch 0 of the plan, 1 is in force"


CORRUPT = {"nothing": "", "no json": "{", "another plan": '{"plan": 1}', "a list": "[]", "deep": "[" * 5000}


@pytest.mark.parametrize("body", CORRUPT.values(), ids=list(CORRUPT))
async def test_a_record_that_can_not_be_read_is_refused_denied_and_hides_no_other(core: Core, body: str) -> None:
    agent, broken = await held(core)
    _, whole = await held(core)
    await corrupt(core, broken, body)
    status, listed = await core.operate("GET", "/v1/approvals?status=pending")
    assert (status, [item["approval_id"] for item in listed["approvals"]]) == (200, [whole, broken])
    assert await core.operate("GET", f"/v1/approvals/{broken}") == (409, {"error": "plan_integrity"})
    assert (await agent.send("GET", f"/v1/approvals/{broken}/poll")).status == 200
    learning = f"/v1/approvals/{broken}/approve?learn_domain=new.example"
    assert await core.operate("POST", learning) == (409, {"error": "plan_integrity"})
    assert await state_of(core, broken) == "failed"
    assert (await told(core, broken))[-1] == ("ActionCall", "deny", "plan_integrity")


async def test_an_unreadable_hold_can_be_denied(core: Core) -> None:
    _agent, approval_id = await held(core)
    await corrupt(core, approval_id, "{")
    status, body = await core.operate("POST", f"/v1/approvals/{approval_id}/deny", {"reason": "broken"})
    assert (status, body["deny_reason"]) == (200, "broken")
    assert await state_of(core, approval_id) == "denied"
