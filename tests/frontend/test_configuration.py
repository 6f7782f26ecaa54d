"""A configuration is read whole and swapped whole, beside the calls, whatever lies where its files should be."""

import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from frontend import configuration as module
from frontend.actions.registry import Registry
from frontend.configuration import Configuration, ConfigurationRefused
from frontend.control import Control
from frontend.policy.engine import PolicyEngine, PolicyRefused, PolicySources
from frontend.pool.pool import Pools
from ipc import messages as m
from ipc.limits import MAX_CONTROL_FRAME
from ipc.nonblocking import TrioChannel
from ipc.sessions import FRONT_TO_SUPERVISOR
from ipc.settings import Settings
from tests.support.front_core import DIGEST, ScriptedPolicy, action
from tests.support.manifests import write_manifests


class Idle:
    """Hears nothing that matters here."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Refusing(ScriptedPolicy):
    """A policy engine that takes nothing."""

    async def load(self, sources: PolicySources) -> None:
        raise PolicyRefused(("gateway.rego:1: no",))


@asynccontextmanager
async def loading(folder: Path, policy: ScriptedPolicy | None = None) -> AsyncIterator[Configuration]:
    """A configuration over `folder`; a template that finds every module answers it."""
    write_manifests(folder / "actions", action())
    (folder / "policy").mkdir()
    (folder / "policy" / "gateway.rego").write_text("package gateway\n")
    (folder / "policy" / "data.json").write_text('{"policy_version": "1"}')
    settings = Settings(
        str(folder), "http://x", manifests_dir=str(folder / "actions"), policy_dir=str(folder / "policy")
    )
    ours, theirs = socket.socketpair()
    control = Control(ours)
    channel: TrioChannel[m.Message] = TrioChannel(
        theirs, m.FrontToSupervisor, table=FRONT_TO_SUPERVISOR, start="starting", cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_CONTROL_FRAME,
    )  # fmt: skip

    async def answer() -> None:
        await channel.send(m.StartFront("front-1-a", (), settings, ()))
        while True:
            asked = await channel.receive()
            assert isinstance(asked, m.LoadModules)
            verdicts = tuple(m.ModuleVerdict(one.reference, "ok", DIGEST) for one in asked.modules)
            await channel.send(m.ModulesLoaded(asked.request_id, 3, verdicts))

    pools = Pools(settings.workers, "{}", control.need_worker, control.kill_worker)
    engine = cast(PolicyEngine, policy or ScriptedPolicy())
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await control.start()
            nursery.start_soon(control.run, Idle())
            yield Configuration(settings, control, engine, pools, Registry(), trio.Lock())
            nursery.cancel_scope.cancel()
    finally:
        control.close()
        channel.close()


async def refused(configuration: Configuration) -> str:
    before = configuration.registry
    with pytest.raises(ConfigurationRefused) as refusal:
        await configuration.load()
    assert configuration.registry is before
    assert refusal.value.problems
    return str(refusal.value)


async def test_a_load_swaps_the_registry(tmp_path: Path) -> None:
    async with loading(tmp_path) as configuration:
        await configuration.load()
        assert [one.action_id for one in configuration.registry.actions] == ["echo"]


async def test_a_policy_that_is_refused_leaves_the_registry_as_it_was(tmp_path: Path) -> None:
    async with loading(tmp_path, Refusing()) as configuration:
        assert "gateway.rego:1: no" in await refused(configuration)


async def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    async with loading(tmp_path) as configuration:
        write_manifests(tmp_path / "actions", action("b", risk_level="none"), action("c", colour="red"))
        (tmp_path / "policy" / "data.json").unlink()
        problems = await refused(configuration)
        assert all(word in problems for word in ("b.yaml", "c.yaml", "data.json"))


@contextmanager
def fifo(path: Path) -> Iterator[None]:
    """A file that never answers whoever opens it, until the end."""
    os.mkfifo(path)
    try:
        yield
    finally:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


@pytest.mark.parametrize("name", ["actions/slow.yaml", "actions/trusted_modules.yaml"])
async def test_a_file_that_is_never_read_holds_up_neither_the_loop_nor_the_next_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(module, "READ_SECONDS", 0.3)
    async with loading(tmp_path) as configuration:
        longest = 0.0

        async def beat() -> None:
            nonlocal longest
            while True:
                began = trio.current_time()
                await trio.sleep(0.01)
                longest = max(longest, trio.current_time() - began)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat)
            with fifo(tmp_path / name):
                assert "was not read within" in await refused(configuration)
            (tmp_path / name).unlink()
            nursery.cancel_scope.cancel()
        assert longest < 0.25, "the loop stood still"
        await configuration.load()


@pytest.mark.parametrize("name", ["actions", "policy"])
async def test_a_folder_that_is_none_is_a_problem_with_its_place(tmp_path: Path, name: str) -> None:
    async with loading(tmp_path) as configuration:
        (tmp_path / name).rename(tmp_path / "away")
        assert name in await refused(configuration)
        (tmp_path / name).write_text("a file")
        assert name in await refused(configuration)


async def test_a_loop_of_links_is_a_problem(tmp_path: Path) -> None:
    async with loading(tmp_path) as configuration:
        (tmp_path / "actions" / "trusted_modules.yaml").symlink_to("trusted_modules.yaml")
        (tmp_path / "actions" / "a.yaml").symlink_to("a.yaml")
        assert "a.yaml" in await refused(configuration)
