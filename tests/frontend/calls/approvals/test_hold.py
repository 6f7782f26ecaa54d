"""Calls that are held: each has one hold, and its agent is answered even if the notary is slow."""

import re
from typing import Any

import pytest
import trio

from frontend.notary.errors import NotarySilent, NotaryUnavailable
from ipc.operations.holds import GetHold
from tests.support.front_core import HOLD, Core, does_and_says, refuses
from tests.support.held_calls import held, told

pytestmark = pytest.mark.front(workers=0)


async def test_a_hold_has_an_id_of_its_own_and_five_minutes(core: Core) -> None:
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


async def test_a_hold_that_is_stored_though_the_notary_was_silent_is_answered_to_its_agent(core: Core) -> None:
    agent = await core.agent(max_calls=3)
    core.policy.answer = HOLD
    core.client.faults["Hold"] = does_and_says(NotarySilent("late"))
    status, body = await agent.call()
    assert status == 202
    assert await told(core, body["approval_id"]) == [("ActionCall", "pending_approval", None)]
    assert await core.remaining(agent) == 2
    assert core.services.metrics.approvals.value("held") == 1


async def test_a_call_that_is_cut_while_its_hold_is_looked_for_has_one_end_in_evidence(core: Core) -> None:
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


async def test_silence_about_a_hold_that_is_not_stored_is_no_replay_of_its_own_call(core: Core) -> None:
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
