"""An approval beyond its time, in a gateway that drains, and a day and a month after its end."""

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.front_core import Core, front_core, then
from tests.support.held_calls import approve, held, state_of

pytestmark = pytest.mark.front(lease_ttl_seconds=3600)


async def test_an_approval_that_was_claimed_in_time_runs_to_its_end_beyond_it(core: Core) -> None:
    agent, approval_id = await held(core)
    core.client.faults["MoveHold"] = then(lambda: setattr(core.clock, "ahead", 301.0))
    assert (await approve(core, approval_id))[0] == 200
    await core.services.upkeep.round()
    assert await state_of(core, approval_id) == "approved"
    assert await core.remaining(agent) == 2


async def test_an_operator_may_approve_while_the_gateway_drains(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent, approval_id = await held(core)
        assert (await core.operate("POST", "/v1/admin/drain"))[0] == 200
        assert (await agent.call())[0] == 503
        status, body = await approve(core, approval_id)
        assert (status, body["approval"]["approval_id"]) == (200, approval_id)
        assert await state_of(core, approval_id) == "approved"
        polled = await agent.send("GET", f"/v1/approvals/{approval_id}/poll")
        assert (polled.status, b"rcpt_" in polled.body) == (200, True)


async def test_an_approval_is_listed_for_a_day_after_its_end_and_shown_as_long_as_it_is_kept(core: Core) -> None:
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
