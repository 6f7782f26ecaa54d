"""Races for one approval: operators with each other, with the clock, with the gateway's own life. One answer each."""

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.front_core import Core, front_core, hangs, then
from tests.support.held_calls import held, state_of, told


async def decide_all(*decisions: tuple[Core, str, str]) -> list[tuple[str, int]]:
    """The answers to these requests (front, approval, verb) when they come at once."""
    answers: list[tuple[str, int]] = []

    async def decide(core: Core, approval_id: str, verb: str) -> None:
        status, _ = await core.operate("POST", f"/v1/approvals/{approval_id}/{verb}")
        answers.append((verb, status))

    async with trio.open_nursery() as nursery:
        for decision in decisions:
            nursery.start_soon(decide, *decision)
    return answers


async def runs(core: Core, approval_id: str) -> int:
    return len(
        [kind for kind, decision, _ in await told(core, approval_id) if (kind, decision) == ("ActionCall", "allow")]
    )


async def test_operators_of_two_fronts_are_one_race(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core, front_core(tmp_path, front_id="front-2-b") as other:
        for _ in range(4):
            agent, approval_id = await held(core)
            answers = await decide_all(
                *[(front, approval_id, verb) for front in (core, other) for verb in ("approve", "deny", "approve")]
            )
            assert sorted(status for _, status in answers) == [200] + [404] * 5
            ((verb, _),) = [answer for answer in answers if answer[1] == 200]
            ended = {"approve": "approved", "deny": "denied"}[verb]
            assert await state_of(other, approval_id) == ended
            assert await runs(core, approval_id) == (ended == "approved")
            assert await core.remaining(agent) == (2 if ended == "approved" else 3)


@pytest.mark.parametrize(("ahead", "verb"), [(200.0, "approve"), (200.0, "deny"), (300.0, "approve"), (300.0, "deny")])
async def test_a_decision_against_the_sweep_has_one_end_whichever_side_of_the_instant(
    tmp_path: Path, ahead: float, verb: str
) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        agent, approval_id = await held(core)
        core.clock.ahead = ahead
        async with trio.open_nursery() as nursery:
            nursery.start_soon(core.services.upkeep.round)
            answers = await decide_all((core, approval_id, verb))
        in_time = ahead < 300
        assert answers == [(verb, 200 if in_time else 404)]
        ended = {"approve": "approved", "deny": "denied"}[verb] if in_time else "expired"
        assert await state_of(core, approval_id) == ended
        assert await core.remaining(agent) == (2 if ended == "approved" else 3)
        kinds = [kind for kind, *_ in await told(core, approval_id)]
        assert kinds.count("ApprovalExpired") == (not in_time)


async def test_an_approval_that_was_claimed_in_time_runs_to_its_end_beyond_it(tmp_path: Path) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        agent, approval_id = await held(core)
        core.client.faults["MoveHold"] = then(lambda: setattr(core.clock, "ahead", 301.0))
        assert await decide_all((core, approval_id, "approve")) == [("approve", 200)]
        await core.services.upkeep.round()
        assert await state_of(core, approval_id) == "approved"
        assert await core.remaining(agent) == 2


async def test_the_sweep_leaves_alone_what_an_operator_has_claimed(tmp_path: Path) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        agent, approval_id = await held(core)
        reached = trio.Event()
        core.client.faults["Open"] = hangs(reached)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(core.operate, "POST", f"/v1/approvals/{approval_id}/approve")
            with trio.fail_after(60):
                await reached.wait()
            core.clock.ahead = 301
            await core.services.upkeep.round()
            assert await state_of(core, approval_id) == "claimed"
            polled = (await agent.send("GET", f"/v1/approvals/{approval_id}/poll")).body
            assert b'"state":"claimed"' in polled
            assert b'"status":"pending"' in polled
            nursery.cancel_scope.cancel()
        assert await core.events(event_type="ApprovalExpired") == []


async def test_an_operator_may_approve_while_the_gateway_drains(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent, approval_id = await held(core)
        assert (await core.operate("POST", "/v1/admin/drain"))[0] == 200
        assert (await agent.call())[0] == 503
        status, body = await core.operate("POST", f"/v1/approvals/{approval_id}/approve")
        assert (status, body["approval"]["approval_id"]) == (200, approval_id)
        assert await state_of(core, approval_id) == "approved"
        polled = await agent.send("GET", f"/v1/approvals/{approval_id}/poll")
        assert (polled.status, b"rcpt_" in polled.body) == (200, True)


async def test_an_approval_is_listed_for_a_day_after_its_end_and_shown_as_long_as_it_is_kept(tmp_path: Path) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        ended: list[str] = []
        for verb in ("approve", "deny"):
            _agent, approval_id = await held(core)
            assert (await core.operate("POST", f"/v1/approvals/{approval_id}/{verb}"))[0] == 200
            ended.append(approval_id)

        async def kept() -> int:
            await core.services.upkeep.round()
            body: Any = (await core.operate("GET", "/v1/approvals"))[1]
            return int(body["count"])

        core.clock.ahead = 24 * 3600 + 3600  # the longest call may end an hour after its hold's time
        assert await kept() == 2
        core.clock.ahead = 26 * 3600
        with trio.fail_after(60):
            while await kept():  # noqa: ASYNC110 (the notary forgets in its own rounds)
                await trio.sleep(0.01)
        path = f"/v1/approvals/{ended[0]}"
        assert (await core.operate("GET", path))[0] == 200
        core.clock.ahead = 31 * 24 * 3600  # approvals.keep_days and a day
        with trio.fail_after(60):
            while (await core.operate("GET", path))[0] == 200:  # noqa: ASYNC110
                await trio.sleep(0.01)
        assert (await core.operate("GET", path))[0] == 404
