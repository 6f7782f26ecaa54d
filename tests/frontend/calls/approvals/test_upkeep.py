"""Upkeep ends undecided holds and settles abandoned claims, also when parts of it fail."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from frontend.deadlines import CallDeadlines
from frontend.notary.errors import NotarySilent, NotaryUnavailable
from ipc.approvals import CLAIMED, FAILED, PENDING
from ipc.operations.holds import ListHolds
from tests.frontend.calls.words import cut_approval
from tests.support.front_core import Core, action, does_and_says, front_core, refuses
from tests.support.held_calls import approve, claimed, corrupt, held, state_of, told
from tests.support.logs import capture_logs
from tests.support.notary_thread import shared_notary
from tests.support.patience import PATIENT

GONE = NotaryUnavailable("the store is gone")
FULL = NotaryUnavailable("the disk is full")
EXPIRED = ("ApprovalExpired", "deny", None)


# ------------------------------------------------------------------ expiry


async def test_holds_are_ended_round_after_round(tmp_path: Path) -> None:
    every_moment = replace(PATIENT, calls=CallDeadlines(upkeep_seconds=0.002))
    async with (
        front_core(tmp_path, deadlines=every_moment, lease_ttl_seconds=3600) as core,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(core.services.upkeep.run)
        for _ in range(2):
            _, approval_id = await held(core)
            core.clock.ahead += 301
            with trio.fail_after(60):
                while (await told(core, approval_id))[-1] != EXPIRED:
                    await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def test_an_expired_hold_is_404_to_an_operator_who_does_not_ask_for_it_and_is_still_listed(
    tmp_path: Path,
) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        agent, approval_id = await held(core, secret="swordfish")
        path = f"/v1/approvals/{approval_id}"
        core.clock.ahead = 301
        for swept in (False, True):
            if swept:
                await core.services.upkeep.round()
            assert await core.operate("GET", path) == (404, {"error": "approval_not_found"})
            status, detail = await core.operate("GET", f"{path}?ended=true")
            assert (status, detail["state"], detail["request"]["secret"]) == (200, "expired", "swordfish")
            assert detail["shown_hash"].startswith("sha256:")
            assert (await core.operate("GET", "/v1/approvals?status=pending"))[1]["count"] == 0
            (item,) = (await core.operate("GET", "/v1/approvals"))[1]["approvals"]
            assert item["state"] == "expired"
            assert b'"state":"expired"' in (await agent.send("GET", f"{path}/poll")).body
        assert (await core.operate("GET", f"{path}?ended=yes"))[0] == 400
        assert (await core.operate("GET", "/v1/approvals/apr_nothing?ended=true"))[0] == 404


@pytest.mark.parametrize("error", [GONE, ValueError("strange"), RuntimeError("ours")])
@pytest.mark.parametrize("operation", ["DueHolds", "UnsettledHolds", "MoveHold"])
async def test_no_failure_ends_the_upkeep(core: Core, operation: str, error: Exception) -> None:
    await held(core)
    core.clock.ahead = 301
    core.client.faults[operation] = refuses(error)
    await core.services.upkeep.round()
    core.client.faults.clear()
    await core.services.upkeep.round()
    assert [record.state for record in (await core.real.ask(ListHolds(None, 10))).approvals] == ["expired"]
    core.clock.is_broken = True
    await core.services.upkeep.round()


async def test_a_failure_that_lasts_is_logged_once_and_again_with_another_cause(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        with capture_logs() as lines:
            for error in (GONE, GONE, FULL, FULL, GONE):
                core.client.faults["DueHolds"] = refuses(error)
                await core.services.upkeep.round()
            core.client.faults.clear()
            await core.services.upkeep.round()
            core.client.faults["DueHolds"] = refuses(GONE)
            await core.services.upkeep.round()
    complaints = [line["cause"] for line in lines if line["event"] == "holds could not be expired"]
    assert complaints == [str(one) for one in (GONE, FULL, GONE, GONE)]


async def test_a_hold_whose_end_can_not_be_written_keeps_no_other_from_its_own(tmp_path: Path) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        _, stuck = await held(core)
        agent, other = await held(core)
        core.clock.ahead = 301

        async def not_the_first(operation: Any, args: Any, kwargs: Any) -> Any:
            if args[0].approval_id == stuck:
                raise GONE
            return await operation(*args, **kwargs)

        core.client.faults["MoveHold"] = not_the_first
        await core.services.upkeep.round()
        assert await state_of(core, other) == "expired"
        assert await core.remaining(agent) == 3
        assert await state_of(core, stuck) == PENDING


# ------------------------------------------------------------------ claims of a front that died


async def test_a_claim_of_a_front_that_lives_is_left_alone(core: Core) -> None:
    _agent, approval_id = await held(core)
    await claimed(core, approval_id, "front-2-lives")
    await core.services.upkeep.at_start(("front-1-a", "front-2-lives"))
    await core.services.upkeep.round()
    assert await state_of(core, approval_id) == CLAIMED


async def test_a_claim_that_was_dispatched_is_not_given_back_and_never_run_again(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("hang")) as core:
        agent, approval_id = await held(core, action_id="hang")
        core.client.faults["Close"] = refuses(FULL)  # as far as a front comes that is killed
        await cut_approval(core, approval_id)
        with shared_notary(core.services.settings, core.clock) as notary:
            notary.state.fronts.discard(core.services.front_id)  # as when its channel has ended
        await core.services.upkeep.at_start(("front-9-next",))
        assert await state_of(core, approval_id) == FAILED
        assert await core.remaining(agent) == 2
        assert await core.unresolved() == 1
        (event, *_) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"], event["reason"]) == (
            "error", "evidence_persistence_failed", "left claimed by a front that did not settle it",
        )  # fmt: skip
        assert (event["approval_id"], event["session_id"]) == (approval_id, agent.session_id)
        assert b'"evidence_persistence_failed"' in (await agent.send("GET", f"/v1/approvals/{approval_id}/poll")).body


@pytest.mark.parametrize("body", ["", "{", '{"plan": 1}'])
async def test_a_claim_that_can_not_be_read_does_not_keep_the_gateway_from_starting(core: Core, body: str) -> None:
    _, broken = await held(core)
    agent, whole = await held(core)
    for approval_id in (broken, whole):
        await claimed(core, approval_id, "front-0-dead")
    await corrupt(core, broken, body)
    await core.services.upkeep.at_start(("front-1-a",))
    assert [await state_of(core, one) for one in (broken, whole)] == [FAILED, FAILED]
    assert (await told(core, broken))[-1] == ("ActionCall", "error", "interrupted")
    assert await core.remaining(agent) == 3


async def test_a_tampered_ledger_does_not_stop_the_gateway_from_starting(core: Core, tmp_path: Path) -> None:
    _agent, approval_id = await held(core)
    await claimed(core, approval_id, "front-0-dead")
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as connection:
        connection.execute("UPDATE events SET bytes = x'5b5d' WHERE event_type = 'ActionCall'")
    connection.close()
    await core.services.upkeep.at_start(("front-1-a",))
    assert await state_of(core, approval_id) == FAILED


# ------------------------------------------------------------------ claims that a failing store left behind


async def test_a_claim_whose_answer_came_too_late_is_ended_and_given_back(core: Core) -> None:
    agent, approval_id = await held(core)
    core.client.faults["MoveHold"] = does_and_says(NotarySilent("late"))
    assert await approve(core, approval_id) == (503, {"error": "approval_store_unavailable"})
    core.client.faults.clear()
    await core.services.upkeep.round()
    assert await state_of(core, approval_id) == FAILED
    assert await core.remaining(agent) == 3
