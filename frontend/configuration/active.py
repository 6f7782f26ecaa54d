"""What a reload swaps: manifests with their modules, policy, keys. Read whole, swapped whole, or not at all.

Loading collects every problem of every file before it refuses. The active registry is replaced by one assignment
after the policy engine has accepted the new policy; with live sync the egress proxy's list has what both need by then,
or nothing is swapped. A call that is being decided in that moment may be decided by the new policy on the action as it
was; its event names both versions. Files are read in a thread, with a deadline: calls go on meanwhile, whatever disk or
file the configuration lies on.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import trio

from frontend.actions.modules import module_doubts, module_files, module_problems
from frontend.actions.registry import Registry, load_manifests
from frontend.actions.trust import Trusted, load_trusted
from frontend.control import Control, SupervisorSilent
from frontend.egress.proxy_list import AllowList, ListNotWritten
from frontend.errors import GateError
from frontend.manifests.manifest import Manifest
from frontend.notary.client import NotaryRefused, NotaryUnavailable
from frontend.notary.operations import Notary
from frontend.policy.acl import PolicyFiles, read_policy
from frontend.policy.engine import PolicyEngine, PolicyRefused
from frontend.policy.file import PolicyFile
from frontend.policy.problems import policy_problems
from frontend.pool.pool import Pools
from frontend.telemetry.logs import log
from ipc.settings import Settings

READ_SECONDS = 30.0
PREPARE_SECONDS = 100.0
"""What a reload may take until it swaps. Less than the supervisor waits, so that it always hears how it went."""
SETTLE_SECONDS = 3.0
"""What a reload that has swapped waits for the egress proxy's list, which is at most too wide."""

T = TypeVar("T")


class ConfigurationRefused(Exception):
    """The files will not do. `problems` are sentences with their places, sorted."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


Commit = Callable[[Registry, PolicyFiles], Awaitable[None]]


@dataclass(slots=True)
class Configuration:
    """Owns what is in force, and how all of it is replaced at once. `policy_files` is None before the first load."""

    settings: Settings
    control: Control
    policy: PolicyEngine
    pools: Pools
    registry: Registry
    notary: Notary
    allow_list: AllowList
    _turn: trio.Lock
    policy_file: PolicyFile = field(init=False)
    policy_files: PolicyFiles | None = None
    policy_turn: trio.Lock = field(default_factory=trio.Lock)
    """Held by whoever replaces the policy in force, from reading its files on."""

    def __post_init__(self) -> None:
        self.policy_file = PolicyFile(self.settings.policy_dir)

    async def load(self, commit: Commit | None = None, *, within: float = math.inf) -> None:
        """Read everything again and swap. Raises ConfigurationRefused, and what `commit` raises; then nothing has
        changed.

        `commit` is awaited when nothing but it can keep what it is given from being in force. `within`: seconds that
        everything up to policy may take.
        """
        async with self._turn:
            async with AsyncExitStack() as swap:
                registry, generation = await self._prepared_in(within, swap)
                async with self.policy_turn:
                    await self._use(registry, await self._policy_on_disk(), commit)
            self.pools.require_generation(generation)
            await self._follow_keys()
            log.info("configuration is active", actions=len(registry), policy_version=self.policy.policy_version)

    async def follow_policy(self, digest: str) -> None:
        """Use the policy that another front has put on the disk. Raises ConfigurationRefused."""
        async with self.policy_turn:
            if self.policy_files is None or self.policy_files.sources.digest == digest:
                return
            found = await self._policy_on_disk()
            if found.sources.digest != digest:
                # Somebody was faster: another front, whose word will follow, or a person, for whom a reload is.
                log.info("the policy on the disk is another one already", policy_version=found.data.policy_version)
                return
            await self._use(self.registry, found, None)
            log.info("another front has changed the policy", policy_version=found.data.policy_version)

    async def _use(self, registry: Registry, files: PolicyFiles, commit: Commit | None) -> None:
        try:
            await self.policy.load(files.sources, None if commit is None else lambda: commit(registry, files))
        except PolicyRefused as error:
            raise self._policy_refused(error) from None
        self.registry, self.policy_files = registry, files

    async def _policy_on_disk(self) -> PolicyFiles:
        try:
            return await self.policy_file.read()
        except PolicyRefused as error:
            raise self._policy_refused(error) from None

    def _policy_refused(self, error: PolicyRefused) -> ConfigurationRefused:
        return ConfigurationRefused([str(one) for one in policy_problems(error.problems, self.settings.policy_dir)])

    async def _prepared_in(self, seconds: float, swap: AsyncExitStack) -> tuple[Registry, int]:
        with trio.move_on_after(seconds):
            found = await self._prepare()
            try:
                reach = self.allow_list.reach_of(found[0])
                await swap.enter_async_context(self.allow_list.wider(reach, settle_seconds=SETTLE_SECONDS))
            except ListNotWritten as error:
                raise ConfigurationRefused([str(error)]) from None
            return found
        raise ConfigurationRefused([f"manifests and modules were not ready within {seconds:g} s"])

    async def _follow_keys(self) -> None:
        """Put the signing keys in force as they lie; they were looked at before."""
        try:
            problems = await self.notary.follow_keys()
        except (NotaryUnavailable, NotaryRefused, GateError) as error:
            problems = [str(error)]
        if problems:
            # They are good, and their evidence is not to be had now: the notary itself tries again each second.
            log.error("the signing keys are not in force yet", problems=problems)

    async def _key_problems(self) -> list[str]:
        try:
            return await self.notary.check_keys()
        except (NotaryUnavailable, NotaryRefused) as error:
            raise ConfigurationRefused([f"the signing keys can't be looked at: {error}"]) from None

    async def _prepare(self) -> tuple[Registry, int]:
        settings = self.settings
        keys = await self._key_problems()
        manifests, trusted = await _in_thread(lambda: _read(settings, keys))
        folder = Path(settings.manifests_dir)
        modules_dir = Path(settings.modules_dir or folder / "modules")
        try:
            loaded = await self.control.load_modules(module_files(manifests, modules_dir))
        except SupervisorSilent as error:
            raise ConfigurationRefused([str(error)]) from None
        refused = [str(problem) for problem in module_problems(manifests, loaded.verdicts, modules_dir)]
        if refused:
            raise ConfigurationRefused(refused)
        for doubt in module_doubts(manifests, loaded.verdicts, modules_dir, trusted):
            log.warning("calls of an action will be refused", problem=str(doubt))
        registry = await _in_thread(lambda: Registry.build(manifests, loaded.verdicts, trusted))
        return registry, loaded.generation


def _read(settings: Settings, keys: list[str]) -> tuple[Sequence[Manifest], Trusted]:
    """All problems at once, those of policy too, though its files are read again when their turn has come; `keys` are
    those of the signing keys."""
    folder = Path(settings.manifests_dir)
    manifests, more = load_manifests(folder, has_proxy=settings.egress_proxy_url is not None)
    trusted, others = load_trusted(folder)
    problems = [*(str(problem) for problem in sorted([*more, *others])), *keys]
    try:
        read_policy(settings.policy_dir)
    except PolicyRefused as error:
        problems += [str(problem) for problem in policy_problems(error.problems, settings.policy_dir)]
        raise ConfigurationRefused(problems) from None
    if problems:
        raise ConfigurationRefused(problems)
    return manifests, trusted


async def _in_thread(read: Callable[[], T]) -> T:
    with trio.move_on_after(READ_SECONDS):
        try:
            return await trio.to_thread.run_sync(read, abandon_on_cancel=True)
        except OSError as error:
            raise ConfigurationRefused([f"the configuration can't be read: {error}"]) from None
    raise ConfigurationRefused([f"the configuration was not read within {READ_SECONDS:g} s"])
