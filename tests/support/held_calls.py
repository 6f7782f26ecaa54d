"""Held calls of a front core: making them, looking at them, spoiling them."""

import sqlite3
from pathlib import Path
from typing import Any

from tests.support.front_core import HOLD, Agent, Core


async def held(core: Core, max_calls: int = 3, action_id: str = "echo", **body: Any) -> tuple[Agent, str]:
    """A held call of a fresh agent."""
    agent = await core.agent(max_calls)
    core.policy.answer = HOLD
    status, answer = await agent.call(action_id, {"n": 1} | body)
    assert status == 202
    return agent, answer["approval_id"]


async def state_of(core: Core, approval_id: str) -> str:
    record = await core.store.approval_get(approval_id)
    return str(record.state)


async def told(core: Core, approval_id: str) -> list[tuple[str, str, str | None]]:
    """What evidence says of an approval, oldest first."""
    return [
        (event["event_type"], event["decision"], event.get("error_code"))
        for event in reversed(await core.events())
        if event.get("approval_id") == approval_id
    ]


async def corrupt(core: Core, approval_id: str, body: str) -> None:
    """Change what the store holds, as a broken disk or a hostile hand would."""
    with sqlite3.connect(Path(core.house.settings.state_dir) / "store.sqlite3") as connection:
        connection.execute("UPDATE approvals SET body = ? WHERE approval_id = ?", (body, approval_id))
    connection.close()
