"""The configuration that a reload swaps: manifests with their modules, policy, keys, and reloadable settings of the
configuration file (ipc/reloadable.py). It is read and swapped as a whole, or not at all.

Loading collects every problem of every file before it refuses. The active registry is replaced by one assignment after
the policy engine has accepted the new policy; with live sync the egress proxy's list has what both need by then, or
nothing is swapped. A call that is being decided in that moment may be decided by the new policy on the action as it
was; its event names both versions. Files are read in a thread, with a deadline: calls go on meanwhile, even if a disk
hangs.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import trio

from frontend.actions.hosts import host_doubts
from frontend.actions.modules import module_doubts, module_files, module_problems, modules_folder
from frontend.actions.registry import Registry, load_manifests
from frontend.actions.roots import root_problems
from frontend.actions.trust import Trusted, load_trusted
from frontend.actions.unfilled import unfilled_doubts
from frontend.auth.operators import Operators
from frontend.calls.approvals.rights import LostRights
from frontend.configuration.current import Current
from frontend.control import SupervisorLink, SupervisorSilent
from frontend.deadlines import ConfigurationDeadlines
from frontend.egress.proxy_list import ListNotWritten, ProxyAllowList
from frontend.egress.rulefile import learned_of
from frontend.errors import GateError
from frontend.files.problems import FileProblem
from frontend.manifests.manifest import Manifest
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.policy.acl import PolicyFiles, read_policy
from frontend.policy.engine import PolicyEngine, PolicyRefused, PolicyUnreached
from frontend.policy.file import PolicyFile
from frontend.policy.problems import policy_problems
from frontend.policy.sinks import believed, for_engine
from frontend.pool.pool import Pools
from frontend.shared.memory import SharedMemory
from frontend.telemetry.logs import log
from ipc.operations.keys import CheckKeys, FollowKeys
from ipc.reloadable import Reloadable, with_reloadable
from ipc.settings import Settings

T = TypeVar("T")


class ConfigurationRefused(Exception):
    """The files will not do. `problems` are sentences with their places, sorted. `is_passing`: nothing is wrong with
    the files; who would have looked at them could not."""

    def __init__(self, problems: list[str], *, is_passing: bool = False) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.is_passing = is_passing


class Fresh(msgspec.Struct, frozen=True):
    """The content of the configuration file, as the supervisor read it; with `problems` it can't be used."""

    reloadable: Reloadable | None = None
    problems: tuple[str, ...] = ()


NOTHING_READ: Final = Fresh()
"""The configuration file was not read."""
Commit = Callable[[Registry, PolicyFiles], Awaitable[None]]


@dataclass(slots=True)
class Configuration:
    """Replaces all that is in `current` at once."""

    current: Current
    control: SupervisorLink
    policy: PolicyEngine
    pools: Pools
    notary: NotaryClient
    allow_list: ProxyAllowList
    memory: SharedMemory
    policy_file: PolicyFile
    deadlines: ConfigurationDeadlines = ConfigurationDeadlines()
    rights: LostRights = field(init=False)
    """Called with the rights that a change takes away."""
    operators: Operators = field(default_factory=lambda: Operators(()))
    """Those that authentication asks."""
    policy_turn: trio.Lock = field(default_factory=trio.Lock)
    """Held while the policy in force is replaced, from the reading of its files on."""
    _turn: trio.Lock = field(default_factory=trio.Lock)
    _changes: int = 0
    """Changes of the policy's data, by whichever front, that are in force here."""

    def __post_init__(self) -> None:
        """Holds under a right that was taken away are asked of the notary."""
        self.rights = LostRights(self.notary)

    async def load(
        self, commit: Commit | None = None, *, within: float = math.inf, fresh: Fresh = NOTHING_READ
    ) -> None:  # fmt: skip
        """Read everything again and swap. Raises ConfigurationRefused, and what `commit` raises; then nothing has
        changed.

        `commit` is awaited when nothing but it can keep what it is given from being in force. `within`: seconds that
        everything up to policy may take. `fresh`: what the configuration file says now.
        """
        async with self._turn:
            async with AsyncExitStack() as swap:
                registry, generation = await self._prepared_in(within, swap, fresh)
                async with self.policy_turn:
                    changes = self.memory.policy_changes
                    files = await self._policy_on_disk()

                    async def agreed(registry: Registry, files: PolicyFiles) -> None:
                        if commit is not None:
                            await commit(registry, files)
                        self._announce(files.sources.digest, changes, is_start=commit is None)

                    await self._use(registry, files, agreed)
                    # No await before the settings: workers that started earlier get no plan that they change.
                    self.pools.require_generation(generation)
                    if fresh.reloadable is not None:
                        self.follow_settings(fresh.reloadable)
                    self._tell_doubts(files)
            await self._follow_keys()
            log.info("configuration is active", actions=len(registry), policy_version=self.policy.policy_version)

    def follow_settings(self, reloadable: Reloadable) -> None:
        """Decide by these settings with the next request. Raises ValueError for operators that can't be told apart."""
        self.operators.follow(Operators(reloadable.operators))
        self.current.settings = with_reloadable(self.current.settings, reloadable)

    def _tell_doubts(self, files: PolicyFiles) -> None:
        said = [doubt.sentence for doubt in files.doubts]
        for problem in policy_problems(said, self.current.settings.policy_dir):
            log.warning("a rule of the policy may have another effect than it seems", problem=str(problem))

    def _announce(self, digest: str, changes: int, *, is_start: bool) -> None:
        """Announce the policy that was read from the disk. The supervisor tells all fronts to reload; a front that
        starts with another policy than the others announces it to them, since all must have the same."""
        self._changes = changes
        in_force = self.memory.policy_digest()
        if is_start and in_force and in_force != digest:
            self._changes = self.memory.change_policy(digest)
        elif in_force != digest and self.memory.policy_changes == changes:
            self.memory.note_policy(digest)

    async def use_newest_policy(self) -> None:
        """Before a decision, put in force each change that another front has answered as done. Without a change it
        costs next to nothing. Raises GateError policy_engine_unavailable if that policy can't be loaded: a right
        that was revoked there must not be allowed here."""
        if self.memory.policy_changes == self._changes:
            return
        with trio.move_on_after(self.deadlines.follow_seconds):
            async with self.policy_turn:
                await self.follow_changes()
        if self.memory.policy_changes != self._changes:
            raise GateError("policy_engine_unavailable", cause="another front has changed the policy, and this one "
                            "can't follow")  # fmt: skip

    async def follow_changes(self) -> None:
        """The same for a task that has the turn at the policy: returns once it is so or the policy is refused."""
        while (changes := self.memory.policy_changes) != self._changes:
            digest = self.memory.policy_digest()
            try:
                is_used = await self._follow(digest)
            except ConfigurationRefused as error:
                log.error("a change of policy that another front has made is refused here", cause=str(error))
                return
            if is_used:
                self._changes = changes
            else:
                await trio.sleep(self.deadlines.look_again_seconds)

    async def follow(self, digest: str) -> None:
        """For the holder of both turns, at policy and file: wait until a front says that this is the policy, and use
        it."""
        while self.memory.policy_digest() != digest:  # noqa: ASYNC110 (another process says it)
            await trio.sleep(self.deadlines.look_again_seconds)
        await self.follow_changes()

    async def follow_policy(self, digest: str) -> None:
        """Use the policy that another front has put on the disk. Raises ConfigurationRefused."""
        async with self.policy_turn:
            await self._follow(digest)

    async def _follow(self, digest: str) -> bool:
        """True once the policy with this digest is in force."""
        if self.current.policy_files is None:
            return False
        if self.current.policy_files.sources.digest == digest:
            return True
        files = await self._policy_on_disk()
        if files.sources.digest != digest:
            # A later change: by another front, whose message will follow, or by a person, who has to reload.
            log.info("the policy on the disk has changed again", policy_version=files.data.policy_version)
            return False
        await self._use(self.current.registry, files, None)
        log.info("another front has changed the policy", policy_version=files.data.policy_version)
        return True

    def changed_policy(self, files: PolicyFiles) -> None:
        """This front has changed the policy's data: every front decides by it from now on."""
        self._note_lost(files)
        self.current.policy_files = files
        self._changes = self.memory.change_policy(files.sources.digest)

    def _note_lost(self, files: PolicyFiles) -> None:
        before = self.current.policy_files
        if before is not None:
            self.rights.note(before.data, files.data)

    async def _use(self, registry: Registry, files: PolicyFiles, commit: Commit | None) -> None:
        files = believed(files, registry.sinks_of)
        try:
            await self.policy.load(for_engine(files), None if commit is None else lambda: commit(registry, files))
        except PolicyRefused as error:
            raise self._policy_refused(error) from None
        except PolicyUnreached as error:
            if not error.is_committed or self.current.policy_files is None:
                raise ConfigurationRefused([f"the policy engine: {error}"], is_passing=True) from None
            log.error("the policy is not in force yet: nothing is decided until it is", cause=str(error))
        self._note_lost(files)
        self.current.registry, self.current.policy_files = registry, files

    async def _policy_on_disk(self) -> PolicyFiles:
        try:
            return await self.policy_file.read()
        except PolicyRefused as error:
            raise self._policy_refused(error) from None

    def _policy_refused(self, error: PolicyRefused) -> ConfigurationRefused:
        return ConfigurationRefused(
            [str(one) for one in policy_problems(error.problems, self.current.settings.policy_dir)]
        )

    async def _prepared_in(self, seconds: float, swap: AsyncExitStack, fresh: Fresh) -> tuple[Registry, int]:
        with trio.move_on_after(seconds):
            prepared = await self._prepare(fresh)
            try:
                reach = self.allow_list.reach_of(prepared[0])
                wider = self.allow_list.wider(reach, settle_seconds=self.deadlines.settle_seconds)
                await swap.enter_async_context(wider)
            except ListNotWritten as error:
                raise ConfigurationRefused([str(error)]) from None
            return prepared
        raise ConfigurationRefused([f"manifests and modules were not ready within {seconds:g} s"])

    async def _follow_keys(self) -> None:
        """Put the signing keys in force as they lie; they were looked at before."""
        try:
            problems = await self.notary.ask(FollowKeys())
        except (NotaryUnavailable, NotaryRefused, GateError) as error:
            problems = [str(error)]
        if problems:
            # The keys are good, but their evidence can't be written now: the notary itself tries again each second.
            log.error("the signing keys are not in force yet", problems=problems)

    async def _key_problems(self) -> list[str]:
        try:
            return await self.notary.ask(CheckKeys())
        except (NotaryUnavailable, NotaryRefused) as error:
            told = [f"the signing keys can't be looked at: {error}"]
            raise ConfigurationRefused(told, is_passing=True) from None

    async def _prepare(self, fresh: Fresh) -> tuple[Registry, int]:
        settings, within = self.current.settings, self.deadlines.read_seconds
        told = [*fresh.problems, *_operator_problems(fresh), *await self._key_problems()]
        manifests, trusted = await _in_thread(lambda: _read(settings, told), within)
        modules_dir = modules_folder(settings)
        try:
            loaded = await self.control.load_modules(module_files(manifests, modules_dir))
        except SupervisorSilent as error:
            raise ConfigurationRefused([str(error)], is_passing=True) from None
        refused = [str(problem) for problem in module_problems(manifests, loaded.verdicts, modules_dir)]
        if refused:
            raise ConfigurationRefused(refused)
        for doubt in module_doubts(manifests, loaded.verdicts, modules_dir, trusted):
            _warn("calls of an action will be refused", doubt)
        for doubt in await _in_thread(lambda: _host_doubts(settings, manifests), within):
            _warn("calls of an action will wait for a person", doubt)
        for doubt in await _in_thread(lambda: unfilled_doubts(manifests), within):
            _warn("calls of an action will be refused", doubt)
        registry = await _in_thread(lambda: Registry.build(manifests, loaded.verdicts, trusted), within)
        return registry, loaded.generation


def _warn(message: str, doubt: FileProblem) -> None:
    log.warning(message, problem=str(doubt), file=doubt.file, line=doubt.line, field=doubt.field)


def _host_doubts(settings: Settings, manifests: Sequence[Manifest]) -> list[FileProblem]:
    return host_doubts(manifests, learned_of(settings))


def _operator_problems(fresh: Fresh) -> list[str]:
    try:
        Operators(() if fresh.reloadable is None else fresh.reloadable.operators)
    except ValueError as error:
        return [str(error)]
    return []


def _read(settings: Settings, told: list[str]) -> tuple[Sequence[Manifest], Trusted]:
    """All problems at once, those of policy too, though its files are read again when their turn has come; `told` are
    those of the configuration file and of the signing keys."""
    folder = Path(settings.manifests_dir)
    manifests, more = load_manifests(folder, has_proxy=settings.egress_proxy_url is not None)
    trusted, others = load_trusted(folder)
    roots = root_problems(manifests, settings.files_folder)
    problems = [*(str(problem) for problem in sorted([*more, *others, *roots])), *told]
    try:
        read_policy(settings.policy_dir, has_rules=settings.opa_url is None)
    except PolicyRefused as error:
        problems += [str(problem) for problem in policy_problems(error.problems, settings.policy_dir)]
        raise ConfigurationRefused(problems) from None
    if problems:
        raise ConfigurationRefused(problems)
    return manifests, trusted


async def _in_thread(read: Callable[[], T], seconds: float) -> T:
    with trio.move_on_after(seconds):
        try:
            return await trio.to_thread.run_sync(read, abandon_on_cancel=True)
        except OSError as error:
            raise ConfigurationRefused([f"the configuration can't be read: {error}"]) from None
    raise ConfigurationRefused([f"the configuration was not read within {seconds:g} s"], is_passing=True)
