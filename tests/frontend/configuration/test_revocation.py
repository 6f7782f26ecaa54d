"""Revoking everything at once: what dies, when, whatever else breaks, and what lives on."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest
import trio

from frontend.errors import GateError
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ReadEpoch
from tests.support.coded import Coded
from tests.support.front_core import HOLD, Core, front_core, lose_store, refuses
from tests.support.held_calls import approve, held, state_of
from tests.support.worker_desk import until

REVOKE = ("POST", "/v1/admin/revoke-all")
EPOCH = ("GET", "/v1/admin/epoch")
FULL = NotaryUnavailable("the disk is full")
GONE = NotaryUnavailable("gone")
DEAD = (401, Coded("invalid_lease"))


class Answers:
    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self.found: dict[str, Any] = {}

    def start(self, name: str, ask: Callable[[], Awaitable[Any]]) -> None:
        async def keep() -> None:
            self.found[name] = await ask()

        self._nursery.start_soon(keep)

    async def of(self, name: str) -> Any:
        await until(lambda: name in self.found)
        return self.found[name]


async def told(core: Core) -> list[tuple[str, str | None, str | None]]:
    return [
        (event["decision"], event.get("error_code"), event.get("reason"))
        for event in reversed(await core.events(event_type="AdminRevokeAll"))
    ]


async def test_every_earlier_lease_ends_everywhere_and_new_ones_live(core: Core) -> None:
    agent, approval_id = await held(core)
    core.policy.answer = msgspec.structs.replace(HOLD, requires_approval=False)
    other = await core.agent()
    _, done = await other.call()
    assert await core.operate(*EPOCH) == (200, {"current_epoch": 0})
    assert await core.operate(*REVOKE) == (200, {"previous_epoch": 0, "current_epoch": 1})
    assert await core.operate(*EPOCH) == (200, {"current_epoch": 1})
    assert await other.call() == DEAD
    for caller, path in (
        (agent, f"/v1/approvals/{approval_id}/poll"),
        (other, f"/v1/receipts/{done['receipt_id']}"),
    ):
        answer = await caller.send("GET", path)
        assert (answer.status, msgspec.json.decode(answer.body)) == DEAD
    fresh = await core.agent()
    assert jwt.decode(fresh.token, options={"verify_signature": False})["epoch"] == 1
    assert (await fresh.call())[0] == 200
    (event,) = await core.events(event_type="AdminRevokeAll")
    assert (event["principal"], event["decision"]) == ("operator:op", "allow")
    assert event["operator_sender_binding"] == core.operator_key.jkt
    assert event["operator_proof_jti"]
    assert event["reason"] == "the epoch was raised from 0 to 1"


async def test_every_earlier_hold_has_ended_when_the_operator_is_answered(core: Core) -> None:
    holds = [await held(core) for _ in range(25)]
    assert (await core.operate(*REVOKE))[0] == 200
    assert [event["approval_id"] for event in await core.events(event_type="ApprovalExpired")] == [
        approval_id for _, approval_id in reversed(holds)
    ]  # fmt: skip
    (told, *_) = await core.events(event_type="ApprovalExpired")
    assert (told["decision"], told["reason"]) == ("deny", "everything of before was revoked")
    for agent, approval_id in holds:
        assert await state_of(core, approval_id) == "expired"
        assert await core.remaining(agent) == 3
    assert (await core.operate("GET", "/v1/approvals?status=pending"))[1]["total"] == 0
    assert (await core.operate("GET", "/v1/admin/status"))[1]["pending_approvals"] == 0


@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_an_earlier_hold_can_not_be_decided_even_before_its_end_is_written(core: Core, verb: str) -> None:
    _, approval_id = await held(core)
    core.client.faults["DueHolds"] = refuses(FULL)
    assert (await core.operate(*REVOKE))[0] == 200
    assert await core.events(event_type="ApprovalExpired") == []
    path = f"/v1/approvals/{approval_id}"
    assert await core.operate("POST", f"{path}/{verb}") == (404, {"error": "approval_not_found"})
    assert await core.operate("GET", path) == (404, {"error": "approval_not_found"})
    (item,) = (await core.operate("GET", "/v1/approvals"))[1]["approvals"]
    assert item["state"] == "expired"
    core.client.faults.clear()
    await core.services.upkeep.round()
    assert len(await core.events(event_type="ApprovalExpired")) == 1


# ------------------------------------------------------------------ calls that are on their way


async def waits_for_a_worker(core: Core) -> None:
    await until(lambda: core.services.pools.census()["compute"].waiting == 1)


async def test_a_call_that_has_checked_in_and_waits_for_a_worker_is_not_dispatched(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core, trio.open_nursery() as nursery:
        agent, answers = await core.agent(max_calls=3), Answers(nursery)
        answers.start("call", agent.call)
        await waits_for_a_worker(core)
        assert (await core.operate(*REVOKE))[0] == 200
        core.desk.start()
        assert await answers.of("call") == DEAD
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"]) == ("deny", "invalid_lease")
        assert "epoch 0 of the call, 1 is in force" in event["reason"]
        assert await core.real.ask(ListUnresolved(10)) == []
        assert await core.remaining(agent) == 3, "nothing ran, so the call was given back"
        assert (await (await core.agent()).call())[0] == 200, "and the worker serves others"


async def test_a_call_that_policy_is_still_deciding_is_not_dispatched(core: Core) -> None:
    agent = await core.agent()

    async def revoke() -> None:
        core.policy.before = trio.lowlevel.checkpoint
        assert (await core.operate(*REVOKE))[0] == 200

    core.policy.before = revoke
    assert await agent.call() == DEAD
    assert [event["decision"] for event in await core.events(event_type="ActionCall")] == ["deny"]


async def test_an_approved_plan_that_waits_for_a_worker_is_not_dispatched(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core, trio.open_nursery() as nursery:
        agent, approval_id = await held(core)
        answers = Answers(nursery)
        answers.start("approve", lambda: approve(core, approval_id))
        await waits_for_a_worker(core)
        assert (await core.operate(*REVOKE))[0] == 200
        core.desk.start()
        assert await answers.of("approve") == (409, Coded("plan_integrity"))
        assert await state_of(core, approval_id) == "failed"
        assert await core.remaining(agent) == 3


async def test_a_call_whose_intent_is_asked_for_after_the_revocation_is_not_opened(core: Core) -> None:
    """The notary decides by the epoch that it has written, even if this front does not know it yet."""
    agent = await core.agent(max_calls=3)

    async def too_late(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        assert (await core.operate(*REVOKE))[0] == 200
        return await operation(*args, **kwargs)

    core.client.faults["Open"] = too_late
    assert await agent.call() == DEAD
    (event,) = await core.events(event_type="ActionCall")
    assert (event["decision"], event["error_code"]) == ("deny", "invalid_lease")
    assert (await core.remaining(agent), await core.unresolved()) == (3, 0)


async def test_a_call_asks_the_notary_for_no_more_than_it_needs(core: Core) -> None:
    agent, free = await core.agent(max_calls=1), await core.agent()
    for caller in (agent, free):
        core.client.asked.clear()
        assert (await caller.call())[0] == 200
        # but for the pulses, which ask once a second
        assert [one for one in core.client.asked if one not in ("ReadStore", "ReadLedger")] == ["Open"]


# ------------------------------------------------------------------ what breaks meanwhile


@pytest.mark.parametrize("problem", [GONE, NotaryRefused("no")])
async def test_an_unwritten_revocation_is_not_in_force_and_is_answered_as_failed(
    core: Core, problem: Exception
) -> None:
    agent = await core.agent()
    core.client.faults["Revoke"] = refuses(problem)
    assert await core.operate(*REVOKE) == (503, {"error": "epoch_store_unavailable"})
    core.client.faults.clear()
    assert (await agent.call())[0] == 200
    assert await told(core) == []
    assert await core.operate(*REVOKE) == (200, {"previous_epoch": 0, "current_epoch": 1})
    assert [one[0] for one in await told(core)] == ["allow"]


async def test_an_epoch_that_can_not_be_read_is_not_guessed(core: Core) -> None:
    core.client.faults["ReadEpoch"] = refuses(GONE)
    assert await core.operate(*EPOCH) == (503, {"error": "epoch_store_unavailable"})


async def test_a_lease_carries_the_epoch_that_was_raised_though_it_can_not_be_read(core: Core) -> None:
    await core.agent()
    assert (await core.operate(*REVOKE))[0] == 200
    core.client.faults["ReadEpoch"] = refuses(GONE)
    agent = await core.agent()
    core.client.faults.clear()
    assert (await agent.call())[0] == 200


async def test_a_store_that_was_lost_brings_no_revoked_lease_back(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        revoked = await core.agent()
        assert (await core.operate(*REVOKE))[0] == 200
        last = await core.agent()
    lose_store(tmp_path)
    async with front_core(tmp_path) as core:
        await core.services.revocation.catch_up()
        for agent in (revoked, last):  # the replay cache is lost too: proofs of either could be shown again
            agent.core = core
            assert await agent.call() == DEAD
        assert (await (await core.agent()).call())[0] == 200
        (event, _) = await core.events(event_type="AdminRevokeAll")
        assert event["principal"] == "gateway"
        assert event["change"] == {"previous_epoch": 0, "current_epoch": 2}
        assert event["reason"] == "the epoch was raised from 0 to 2, since the store had lost 1"
        await core.services.revocation.catch_up()
        assert await core.real.ask(ReadEpoch()) == 2, "what is whole is left alone"
    lose_store(tmp_path)
    async with front_core(tmp_path, workers=0) as core:
        await core.services.revocation.catch_up()
        assert await core.real.ask(ReadEpoch()) == 3


@pytest.mark.parametrize("operation", ["QueryEvents", "ReadEpoch", "Revoke"])
async def test_a_lost_epoch_is_not_guessed_where_the_notary_fails(tmp_path: Path, operation: str) -> None:
    async with front_core(tmp_path, workers=0) as core:
        assert (await core.operate(*REVOKE))[0] == 200
    lose_store(tmp_path)
    async with front_core(tmp_path, workers=0) as core:
        core.client.faults[operation] = refuses(FULL)
        with pytest.raises((NotaryUnavailable, GateError)):
            await core.services.revocation.catch_up()
        core.client.faults.clear()
        assert await core.real.ask(ReadEpoch()) == 0
        await core.services.revocation.catch_up()
        assert await core.real.ask(ReadEpoch()) == 2
        assert len(await told(core)) == 2
