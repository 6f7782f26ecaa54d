"""What a look at a hold costs: an agent's poll, an operator's list and detail."""

from pathlib import Path
from typing import Any

import msgspec

from ipc.messages import GetHold
from ipc.store import ApprovalRecord
from tests.support.front_core import front_core
from tests.support.held_calls import held


async def test_a_poll_reads_the_state_of_a_hold_and_no_plan(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
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
