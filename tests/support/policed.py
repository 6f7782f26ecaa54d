"""A front core whose policy lies in a folder, as it does in a gateway, with a real policy process if it is wanted."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import force_setattr

from frontend.policy.engine import RunningEngine
from frontend.policy.sinks import believed, for_engine
from tests.support.front_core import Core, action, front_core
from tests.support.policy import DEFAULT_POLICY, running_engine

ACTIONS = (
    action("echo"), action("pay", risk_level="critical", declared_side_effects=["http_write"]),
    action("read", declared_side_effects=["http_read"]), action("note", declared_side_effects=["fs_write"]),
)  # fmt: skip
DATA: dict[str, Any] = {
    "policy_version": "v1",
    "acl": {
        "dev:anonymous": {"actions": ["echo", "pay"], "sinks": ["http_write"]},
        "billing": {"actions": ["read"], "sinks": ["http_read"], "inherits_wildcard": True},
    },
    "allowlist": {"pay": {"billing": True}},
    "denied_actions": {},
    "of_the_author": {"limits": [1, 2.5, None]},
}


def write_policy(folder: Path, **changes: Any) -> Path:
    """The default rules with this data; returns data.json."""
    folder.mkdir(exist_ok=True)
    (folder / "gateway.rego").write_text(DEFAULT_POLICY.read_text())
    (folder / "data.json").write_text(json.dumps(DATA | changes))
    return folder / "data.json"


@asynccontextmanager
async def policed(
    folder: Path, *manifests: dict[str, Any], is_real: bool = False, engine: RunningEngine | None = None,
    data: dict[str, Any] | None = None, rules: str | None = None, **changes: Any,
) -> AsyncIterator[Core]:  # fmt: skip
    """A front core with ACTIONS (or these), its policy in `folder/policy` loaded, with these rules in place of the
    default ones. Without `is_real` and `engine` the engine is the core's own, with answers set by the test."""
    write_policy(folder / "policy", **(data or {}))
    if rules is not None:
        (folder / "policy" / "gateway.rego").write_text(rules)
    async with AsyncExitStack() as stack:
        if is_real:
            engine = (await stack.enter_async_context(running_engine(None))).engine
        core = await stack.enter_async_context(front_core(folder, *(manifests or ACTIONS), **changes))
        configuration = core.services.configuration
        configuration.policy = engine or core.policy
        if engine is not None:
            core.services.policy = engine
            force_setattr(core.services.pipeline.deciding, "policy", engine)
            force_setattr(core.services.settlement, "policy", engine)
        files = believed(await configuration.policy_file.read(), configuration.current.registry.sinks_of)
        configuration.current.policy_files = files
        await configuration.policy.load(for_engine(files))
        yield core


async def sent(core: Core) -> list[Any]:
    """The messages of this front to its supervisor, in order."""
    messages = []
    while core.services.control._unsent_out.statistics().current_buffer_used:
        messages.append(await core.services.control._unsent_out.receive())
    return messages
