"""Held calls of a front core: making them, looking at them, spoiling them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from ipc.approvals import CLAIMED, PENDING, DecisionOutcome
from ipc.messages.modules import ModuleFile, ModulesLoaded, ModuleVerdict
from ipc.operations.holds import GetHold
from tests.support.front_core import HOLD, Agent, Core, action


async def held(core: Core, max_calls: int = 3, action_id: str = "echo", **body: Any) -> tuple[Agent, str]:
    """A held call of a fresh agent."""
    agent = await core.agent(max_calls)
    core.policy.answer = HOLD
    status, answer = await agent.call(action_id, {"n": 1} | body)
    assert status == 202
    return agent, answer["approval_id"]


async def approve(core: Core, approval_id: str, query: str = "") -> tuple[int, Any]:
    """Approve it as the operator; status and body of the answer."""
    return await core.operate("POST", f"/v1/approvals/{approval_id}/approve{query}")


async def state_of(core: Core, approval_id: str) -> str:
    record = await core.real.ask(GetHold(approval_id))
    assert record is not None
    return record.state


async def told(core: Core, approval_id: str) -> list[tuple[str, str, str | None]]:
    """The events of an approval, oldest first."""
    return [
        (event["event_type"], event["decision"], event.get("error_code"))
        for event in reversed(await core.events())
        if event.get("approval_id") == approval_id
    ]


async def corrupt(core: Core, approval_id: str, body: str) -> None:
    """Change what the store holds, as a broken disk or a hostile hand would."""
    with sqlite3.connect(Path(core.services.settings.state_dir) / "ledger.sqlite3") as connection:
        connection.execute("UPDATE approvals SET body = ? WHERE approval_id = ?", (body, approval_id))
    connection.close()


async def claimed(core: Core, approval_id: str, holder: str) -> None:
    """A front that is not this one claims it, and is not there to settle it: the notary would have it from that one."""
    outcome = msgspec.json.encode(DecisionOutcome(claimed_by="alice", claimed_at="2026-01-01T00:00:00.000Z")).decode()
    with closing(sqlite3.connect(Path(core.services.settings.state_dir) / "ledger.sqlite3")) as connection, connection:
        changed = connection.execute(
            "UPDATE approvals SET state = ?, holder = ?, outcome = ? WHERE approval_id = ? AND state = ?",
            (CLAIMED, holder, outcome, approval_id, PENDING),
        )
        assert changed.rowcount == 1


def reaching(action_id: str = "echo", **changes: Any) -> dict[str, Any]:
    """An action that sends a request to the host that it is asked for; known.example is in its manifest."""
    schema = {"type": "object", "properties": {"host": {"type": "string"}}, "required": ["host"]}
    return action(
        action_id, required_imports=["http"], io={"request_schema": schema},
        egress={"profile": "direct_allowlist", "allowed_domains": ["known.example"]},
        template={"method": "GET", "url_template": "https://{host}/x"}, **changes,
    )  # fmt: skip


def filing(action_id: str = "echo", **changes: Any) -> dict[str, Any]:
    """An action that writes the file that it is asked for; `known/**` is in its manifest, `secret/**` denied."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return action(
        action_id, required_imports=["fs"], io={"request_schema": schema},
        fs={"allowed_operations": ["write"], "allowed_paths": ["known/**"], "denied_paths": ["secret/**"]}, **changes,
    )  # fmt: skip


async def reached(core: Core, agent: Agent, body: dict[str, str], action_id: str = "echo") -> tuple[str, ...]:
    """The fields that policy sees as unresolved in such a call."""
    core.policy.answer = HOLD
    status, answer = await agent.call(action_id, body)
    assert status == 202, answer
    question = core.policy.questions[-1]
    return question.unresolved_domains + question.unresolved_paths


def template_says(core: Core, verdict: ModuleVerdict) -> list[ModuleFile]:
    """Answer for the template; returns what it is asked for, as that comes."""
    asked: list[ModuleFile] = []

    async def answer(modules: tuple[ModuleFile, ...]) -> ModulesLoaded:
        asked.extend(modules)
        return ModulesLoaded("load", 0, (verdict,))

    core.services.control.load_modules = answer  # type: ignore[method-assign]  # no supervisor reads this channel
    return asked
