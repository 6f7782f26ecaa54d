"""Calls that are held: each has one hold, and its agent is answered even if the notary is slow."""

import re
from pathlib import Path
from typing import Any

import trio

from frontend.notary.errors import NotarySilent, NotaryUnavailable
from ipc.operations.holds import GetHold
from tests.support.front_core import HOLD, does_and_says, front_core, refuses
from tests.support.held_calls import held, told


async def test_a_hold_has_an_id_of_its_own_and_five_minutes(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        core.clock.stop()
        _, first = await held(core)
        _, second = await held(core, m=2)
        assert first != second
        assert all(re.fullmatch(r"apr_[0-9a-f-]{36}", one) for one in (first, second))
        record = await core.real.ask(GetHold(first))
        assert record is not None
        assert (record.created_at, record.expires_at) == (core.clock.right, core.clock.right + 300)
        assert (record.principal, record.epoch, record.state) == ("dev:anonymous", 0, "pending")
        assert core.services.metrics.approvals.value("held") == 2


async def test_twenty_calls_of_a_session_may_wait_and_the_next_one_is_not_paid_for(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        agent = await core.agent(max_calls=30)
        core.policy.answer = HOLD
        for number in range(20):
            assert (await agent.call("echo", {"n": number}))[0] == 202
        status, body = await agent.call("echo", {"n": 20})
        assert (status, body["error"]) == (429, "too_many_pending_approvals")
        assert await core.remaining(agent) == 10
        await held(core)


async def test_a_hold_that_is_stored_though_the_notary_was_silent_is_answered_to_its_agent(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        agent = await core.agent(max_calls=3)
        core.policy.answer = HOLD
        core.client.faults["Hold"] = does_and_says(NotarySilent("late"))
        status, body = await agent.call()
        assert status == 202
        assert await told(core, body["approval_id"]) == [("ActionCall", "pending_approval", None)]
        assert await core.remaining(agent) == 2
        assert core.services.metrics.approvals.value("held") == 1


async def test_a_call_that_is_cut_while_its_hold_is_looked_for_has_one_end_in_evidence(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        agent, scope = await core.agent(max_calls=3), trio.CancelScope()
        core.policy.answer = HOLD

        async def cut(operation: Any, args: Any, kwargs: Any) -> Any:
            await operation(*args, **kwargs)
            scope.cancel()
            raise NotarySilent("late")

        core.client.faults["Hold"] = cut
        with scope:
            await agent.call()
        assert [one["decision"] for one in await core.events(event_type="ActionCall")] == ["pending_approval"]


async def test_silence_about_a_hold_that_is_not_stored_is_no_replay_of_its_own_call(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core:
        agent = await core.agent(max_calls=3)
        core.policy.answer = HOLD
        core.client.faults["Hold"] = refuses(NotarySilent("late"))
        assert await agent.call() == (503, {"error": "replay_cache_unavailable"})
        (event,) = await core.events(event_type="ActionCall")
        assert (event["decision"], event["error_code"], event["reason"]) == (
            "error", "replay_cache_unavailable", "late",
        )  # fmt: skip
        core.client.faults["GetHold"] = refuses(NotaryUnavailable("gone"))
        assert await agent.call() == (503, {"error": "replay_cache_unavailable"})
        assert await core.remaining(agent) == 3
