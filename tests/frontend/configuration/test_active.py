"""A configuration is read whole and swapped whole, beside the calls, whatever lies where its files should be."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from frontend.actions.registry import Registry
from frontend.configuration.active import Configuration, ConfigurationRefused
from frontend.configuration.current import Current
from frontend.control import SupervisorLink
from frontend.deadlines import ConfigurationDeadlines
from frontend.egress.proxy_list import HEAD, ProxyAllowList, list_file
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.in_force import NotaryFacts
from frontend.policy.acl import PolicyFiles
from frontend.policy.engine import Commit, PolicyEngine, PolicyRefused, PolicySources
from frontend.policy.file import PolicyFile
from frontend.pool.pool import Pools
from frontend.shared.memory import SharedMemory
from ipc.channel.front_memory import Layout, make_memory
from ipc.channel.nonblocking import TrioChannel
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.control import FrontToSupervisor, StartFront
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModulesLoaded, ModuleVerdict
from ipc.protocols.front import FRONT_TO_SUPERVISOR
from notary.signing.keys import rotate
from notary.signing.make_keys import make_keys
from tests.support.dying_rotation import places_in
from tests.support.front_core import DIGEST, ScriptedPolicy, action, settings_of
from tests.support.hanging_files import hanging
from tests.support.logs import capture_logs
from tests.support.manifests import write_manifests
from tests.support.notary_thread import NotaryThread
from tests.support.patience import PATIENT
from tests.support.worker_desk import until


class Idle:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Refusing(ScriptedPolicy):
    async def load(self, sources: PolicySources, commit: Commit | None = None) -> None:
        raise PolicyRefused(("gateway.rego:1: no",))


@asynccontextmanager
async def loading(
    folder: Path, policy: ScriptedPolicy | None = None, listed: Path | None = None,
    deadlines: ConfigurationDeadlines = PATIENT.configuration,
) -> AsyncIterator[Configuration]:  # fmt: skip
    """A configuration over `folder`; a template that finds every module answers it. `listed`: for live sync."""
    write_manifests(folder / "actions", action())
    (folder / "policy").mkdir()
    (folder / "policy" / "gateway.rego").write_text("package gateway\n")
    (folder / "policy" / "data.json").write_text('{"policy_version": "1"}')
    settings = settings_of(folder, "jkt")
    ours, theirs = socket.socketpair()
    control = SupervisorLink(ours)
    channel: TrioChannel[Message] = TrioChannel(
        theirs, FrontToSupervisor, table=FRONT_TO_SUPERVISOR, cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_CONTROL_FRAME,
    )  # fmt: skip

    async def answer() -> None:
        await channel.send(StartFront("front-1-a", (), settings, ()), (make_memory(Layout.of(settings)),))
        while True:
            asked = await channel.receive()
            assert isinstance(asked, LoadModules)
            verdicts = tuple(ModuleVerdict(one.reference, "ok", DIGEST) for one in asked.modules)
            await channel.send(ModulesLoaded(asked.request_id, 3, verdicts))

    pools = Pools(settings.workers, control.need_worker, control.kill_worker, control.tell_serves, PATIENT.pool)
    engine = cast(PolicyEngine, policy or ScriptedPolicy())
    make_keys(folder)
    notary, client = NotaryThread(settings), NotaryClient()
    client.attach(notary.attach("front-1-a"))
    file = list_file(None if listed is None else str(listed), folder, PATIENT.files)
    current = Current(settings)
    allow_list = ProxyAllowList(file, current.registry_now, dict)
    configuration = Configuration(
        current, control, engine, pools, client, allow_list, SharedMemory.alone(),
        PolicyFile(settings.policy_dir, PATIENT.policy, PATIENT.files), deadlines,
    )  # fmt: skip
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await nursery.start(client.run)
            await control.start()
            nursery.start_soon(control.run, Idle())
            yield configuration
            nursery.cancel_scope.cancel()
    finally:
        control.close()
        channel.close()
        notary.stop()


async def refused(configuration: Configuration) -> str:
    before = configuration.current.registry
    with pytest.raises(ConfigurationRefused) as refusal:
        await configuration.load()
    assert configuration.current.registry is before
    assert refusal.value.problems
    return str(refusal.value)


async def test_a_load_swaps_the_registry(tmp_path: Path) -> None:
    async with loading(tmp_path) as configuration:
        await configuration.load()
        assert [one.action_id for one in configuration.current.registry.actions] == ["echo"]


async def test_a_policy_that_is_refused_leaves_the_registry_as_it_was(tmp_path: Path) -> None:
    async with loading(tmp_path, Refusing()) as configuration:
        assert "gateway.rego:1  no." in await refused(configuration)


async def test_a_load_names_rules_that_may_not_do_what_they_say_in_the_log(tmp_path: Path) -> None:
    async with loading(tmp_path) as configuration:
        rules = "package gateway\n\napplies_junior if input.owner in data.junior\n"
        (tmp_path / "policy" / "gateway.rego").write_text(rules)
        with capture_logs() as logged:
            await configuration.load()
        doubts = [
            one["problem"]
            for one in logged
            if one["event"] == "a rule of the policy may have another effect than it seems"
        ]
        file = tmp_path / "policy" / "gateway.rego"
        assert doubts == [
            f"{file}:3  applies_junior is asked for by no rule: it denies nothing and holds nothing.",
            f"{file}:3  data.junior: data.json does not have it.",
        ]


async def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    async with loading(tmp_path) as configuration:
        write_manifests(tmp_path / "actions", action("b", risk_level="none"), action("c", colour="red"))
        (tmp_path / "policy" / "data.json").unlink()
        problems = await refused(configuration)
        assert all(word in problems for word in ("b.yaml", "c.yaml", "data.json"))


async def test_a_refused_commit_is_not_in_force(tmp_path: Path) -> None:
    """Evidence that can't be written keeps manifests and policy as they were, both."""
    async with loading(tmp_path) as configuration:
        await configuration.load()
        before = configuration.current.registry, configuration.current.policy_files
        write_manifests(tmp_path / "actions", action("more"))
        (tmp_path / "policy" / "data.json").write_text('{"policy_version": "2"}')
        seen: list[tuple[int, str]] = []

        async def commit(registry: Registry, files: PolicyFiles) -> None:
            seen.append((len(registry), files.data.policy_version))
            await trio.lowlevel.checkpoint()
            if len(seen) == 1:
                raise GateError("evidence_persistence_failed")

        with pytest.raises(GateError):
            await configuration.load(commit)
        assert (configuration.current.registry, configuration.current.policy_files) == before
        await configuration.load(commit)
        assert seen == [(2, "2"), (2, "2")]
        assert configuration.current.policy_files is not None
        assert (len(configuration.current.registry), configuration.current.policy_files.data.policy_version) == (2, "2")


async def test_a_reload_that_takes_too_long_is_refused_before_anybody_stops_waiting_for_it(tmp_path: Path) -> None:
    async with loading(tmp_path) as configuration:
        await configuration.load()
        with (
            hanging(tmp_path / "actions" / "slow.yaml", "frontend.manifests.reading"),
            pytest.raises(ConfigurationRefused, match=r"within 0\.1 s"),
        ):
            await configuration.load(within=0.1)
        (tmp_path / "actions" / "slow.yaml").unlink()
        await configuration.load(within=60)


async def test_a_load_takes_the_policy_that_lies_there_when_its_turn_has_come(tmp_path: Path) -> None:
    """A change of policy while modules are being loaded is not undone by the load."""
    async with loading(tmp_path) as configuration, trio.open_nursery() as nursery:
        await configuration.policy_turn.acquire()
        nursery.start_soon(configuration.load)
        await until(lambda: bool(configuration.policy_turn.statistics().tasks_waiting))
        (tmp_path / "policy" / "data.json").write_text('{"policy_version": "changed"}')
        configuration.policy_turn.release()
        await until(
            lambda: bool((files := configuration.current.policy_files) and files.data.policy_version == "changed")
        )


async def test_keys_are_put_in_force_with_everything_else_or_not_at_all(tmp_path: Path) -> None:
    async with loading(tmp_path) as configuration:
        places, known = places_in(Path(configuration.current.settings.state_dir)), NotaryFacts()
        configuration.notary.on_in_force = known.hear
        await configuration.notary.wait_greeted(60)
        await configuration.load()
        before, (_, new) = known.now.signing_keys, rotate(places.receipt)
        places.lease.key.chmod(0o640)
        (tmp_path / "actions" / "b.yaml").write_text("colour: red")
        problems = await refused(configuration)
        assert "lease.pem: mode 0640 lets others in. Use chmod 0600." in problems
        assert "b.yaml" in problems
        assert known.now.signing_keys == before
        places.lease.key.chmod(0o600)
        (tmp_path / "actions" / "b.yaml").unlink()
        await configuration.load()
        assert known.now.signing_keys["receipt"] == new.kid


# ------------------------------------------------------------------ live sync


def reaching(action_id: str, *domains: str) -> dict[str, Any]:
    egress = {"profile": "direct_allowlist", "allowed_domains": list(domains)}
    return action(
        action_id, required_imports=["http"], egress=egress,
        template={"method": "GET", "url_template": f"http://{domains[0]}/"},
    )  # fmt: skip


def entries(path: Path) -> list[str]:
    head, *lines = path.read_text().splitlines()
    assert head == HEAD
    return lines


async def test_the_proxys_list_has_old_and_new_domains_until_the_new_ones_are_in_force(tmp_path: Path) -> None:
    listed, seen = tmp_path / "out" / "list", list[list[str]]()
    listed.parent.mkdir()

    async def commit(_registry: Registry, _files: PolicyFiles) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(entries(listed))

    async with loading(tmp_path, listed=listed) as configuration:
        write_manifests(tmp_path / "actions", reaching("a", "old.example", "both.example"))
        await configuration.load()
        assert entries(listed) == ["both.example", "old.example"]
        write_manifests(tmp_path / "actions", reaching("a", "new.example", "both.example"))
        await configuration.load(commit)
        assert seen == [["both.example", "new.example", "old.example"]]
        assert entries(listed) == ["both.example", "new.example"]


async def test_a_load_that_is_refused_leaves_the_proxys_list_as_it_was(tmp_path: Path) -> None:
    listed, policy = tmp_path / "out" / "list", ScriptedPolicy()
    listed.parent.mkdir()
    async with loading(tmp_path, policy, listed=listed) as configuration:
        write_manifests(tmp_path / "actions", reaching("a", "old.example"))
        await configuration.load()
        write_manifests(tmp_path / "actions", reaching("a", "new.example"))
        policy.refusal = PolicyRefused(("gateway.rego:1: no",))
        await refused(configuration)
        assert entries(listed) == ["old.example"]


async def test_a_load_whose_list_can_not_be_written_is_refused_before_anything_is_swapped(tmp_path: Path) -> None:
    listed, policy = tmp_path / "out" / "list", ScriptedPolicy()
    async with loading(tmp_path, policy, listed=listed) as configuration:
        problem = "egress.proxy_allowlist_file: " + str(listed.parent) + ": cannot look at it: No such file"
        assert problem in await refused(configuration)
        assert policy.loaded == []
        listed.parent.mkdir()
        await configuration.load()
        assert entries(listed) == []


async def test_a_list_that_can_not_be_narrowed_after_the_swap_is_wider_until_it_can(tmp_path: Path) -> None:
    listed, away = tmp_path / "out" / "list", tmp_path / "away"
    listed.parent.mkdir()

    async def commit(_registry: Registry, _files: PolicyFiles) -> None:
        await trio.lowlevel.checkpoint()
        listed.parent.rename(away)

    async with loading(tmp_path, listed=listed) as configuration:
        write_manifests(tmp_path / "actions", reaching("a", "old.example"))
        await configuration.load()
        write_manifests(tmp_path / "actions", reaching("a", "new.example"))
        await configuration.load(commit)
        registered = configuration.current.registry.get("a")
        assert registered is not None
        assert registered.allowed_domains == ("new.example",)
        assert entries(away / "list") == ["new.example", "old.example"]
        away.rename(listed.parent)
        await configuration.allow_list.sync()
        assert entries(listed) == ["new.example"]


@pytest.mark.parametrize("name", ["actions/slow.yaml", "actions/trusted_modules.yaml"])
async def test_a_file_that_is_never_read_holds_up_neither_the_loop_nor_the_next_reload(
    tmp_path: Path, name: str
) -> None:
    async with loading(tmp_path, deadlines=ConfigurationDeadlines(read_seconds=0.3)) as configuration:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await trio.sleep(0.01)
                beats += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat)
            with hanging(tmp_path / name, "frontend.manifests.reading"):
                assert "was not read within" in await refused(configuration)
            (tmp_path / name).unlink()
            nursery.cancel_scope.cancel()
        assert beats, "the loop stood still"
        configuration.deadlines = PATIENT.configuration
        await configuration.load()


@pytest.mark.parametrize("name", ["actions", "policy"])
async def test_a_path_that_is_no_folder_is_a_problem_with_its_place(tmp_path: Path, name: str) -> None:
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
