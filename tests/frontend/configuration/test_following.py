"""A change of policy that another front has answered: it is in force here before the next decision, or this front
decides nothing."""

from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from frontend.errors import GateError
from frontend.policy.engine import PolicyRefused, PolicySources
from frontend.policy.file import PolicyFile
from tests.support.front_core import Core
from tests.support.patience import PATIENT
from tests.support.policed import policed, write_policy

pytestmark = pytest.mark.policed


def versions(core: Core) -> list[str]:
    return [sources.policy_version for sources in core.policy.loaded]


async def changed_elsewhere(core: Core, folder: Path, version: str) -> None:
    write_policy(folder / "policy", policy_version=version)
    files = await PolicyFile(str(folder / "policy")).read()
    core.services.memory.change_policy(files.sources.digest)


async def test_calls_that_come_at_once_are_decided_by_the_policy_of_the_other_front(core: Core, tmp_path: Path) -> None:
    agents = [await core.agent() for _ in range(3)]
    await changed_elsewhere(core, tmp_path, "v2")
    async with trio.open_nursery() as nursery:
        for agent in agents:
            nursery.start_soon(agent.call)
    assert versions(core) == ["v1", "v2"]


async def test_nothing_is_read_again_while_nothing_has_changed(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await core.agent()
    monkeypatch.setattr(PolicyFile, "read", None)
    assert (await agent.call())[0] in (200, 403)


async def test_a_front_that_can_not_follow_decides_nothing(tmp_path: Path) -> None:
    deadlines = replace(PATIENT, configuration=replace(PATIENT.configuration, follow_seconds=0.2))
    async with policed(tmp_path, deadlines=deadlines) as core:
        agent = await core.agent()
        core.services.memory.change_policy("0" * 64)  # and something else lies on the disk
        assert await agent.call() == (503, {"error": "policy_engine_unavailable"})
        core.services.configuration.deadlines = PATIENT.configuration
        await changed_elsewhere(core, tmp_path, "v2")
        assert (await agent.call())[0] != 503


async def test_a_front_whose_engine_refuses_the_other_s_policy_decides_nothing(
    core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def refuse(_sources: PolicySources, _commit: object = None) -> None:
        await trio.lowlevel.checkpoint()
        raise PolicyRefused(("no",))

    monkeypatch.setattr(core.policy, "load", refuse)
    await changed_elsewhere(core, tmp_path, "v2")
    with pytest.raises(GateError, match="policy_engine_unavailable"):
        await core.services.configuration.use_newest_policy()


async def test_a_front_that_starts_with_another_policy_brings_it_to_the_others(tmp_path: Path) -> None:
    async with policed(tmp_path, workers=0) as core:
        memory, configuration = core.services.memory, core.services.configuration
        configuration._announce("a" * 64, 0, is_start=True)
        assert (memory.policy_digest(), memory.policy_changes) == ("a" * 64, 0)
        configuration._announce("a" * 64, 0, is_start=True)
        configuration._announce("b" * 64, 0, is_start=False)
        assert memory.policy_changes == 0, "a reload is for all fronts anyway"
        configuration._announce("c" * 64, 0, is_start=True)
        assert (memory.policy_digest(), memory.policy_changes) == ("c" * 64, 1)
