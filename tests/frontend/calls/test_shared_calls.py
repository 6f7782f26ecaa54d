"""Calls that run beside each other in one worker: the others go on where one is cut."""

from pathlib import Path
from typing import Any

import trio
import trio.testing

from frontend.pool.pool import Census
from tests.frontend.calls.words import word_taken
from tests.support.front_core import Agent, Core, action, front_core
from tests.support.supervised import wait_until
from tests.support.worker_desk import until


def shared(action_id: str) -> dict[str, Any]:
    egress = {"profile": "direct_allowlist", "allowed_domains": ["a.example"], "allowed_methods": ["GET"]}
    module = {"provider_module_digest": "builtin:http", "required_imports": ["http"]}
    return action(action_id, egress=egress, **module)


class Begun:
    def __init__(self, core: Core) -> None:
        self.count = 0
        core.client.on_begun = self._one

    def _one(self) -> None:
        self.count += 1

    async def reaches(self, count: int) -> None:
        await until(lambda: self.count == count)


async def cancelled(core: Core, agent: Agent, scope: trio.CancelScope) -> None:
    with scope:
        await agent.call("hang")


async def test_a_call_that_is_cut_takes_no_other_one_along_until_it_is_the_last_of_its_worker(tmp_path: Path) -> None:
    async with front_core(tmp_path, shared("hang")) as core:
        core.desk.start("http")
        agent, begun = await core.agent(), Begun(core)
        core.desk.killed = lambda: wait_until(lambda: not core.notary_thread.state.under_way)
        scopes = [trio.CancelScope() for _ in range(3)]
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for count, scope in enumerate(scopes, 1):
                    nursery.start_soon(cancelled, core, agent, scope)
                    await begun.reaches(count)
                await word_taken(core, "http-2")
                assert core.services.pools.census()["http"] == Census(idle=0, members=1, waiting=0)
                for scope in scopes[1:]:
                    scope.cancel()
                    await trio.testing.wait_all_tasks_blocked()
                    assert core.desk.kills == []
                scopes[0].cancel()
        assert core.desk.kills == [("http-2", "its call was cut")]
        events = await core.events(event_type="ActionCall")
        assert len(events) == 3
        kinds = {(await core.receipt(one["receipt_id"]))["normalized_result"]["kind"] for one in events}
        assert kinds == {"cancelled"}
        assert await core.unresolved() == 0
