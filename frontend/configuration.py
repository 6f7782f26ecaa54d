"""What a reload swaps: manifests with their modules, and policy. Read whole, swapped whole, or not at all.

Loading collects every problem of every file before it refuses. The active registry is replaced by one assignment
after the policy engine has accepted the new policy. A call that is being decided in that moment may be decided by the
new policy on the action as it was; its event names both versions. Files are read in a thread, with a deadline: calls go
on meanwhile, whatever disk or file the configuration lies on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog
import trio

from frontend.actions.manifest import Manifest
from frontend.actions.modules import module_files, module_problems
from frontend.actions.registry import Registry, load_manifests
from frontend.actions.trust import Trusted, load_trusted
from frontend.control import Control, SupervisorSilent
from frontend.policy.acl import read_policy
from frontend.policy.engine import PolicyEngine, PolicyRefused, PolicySources
from frontend.pool.pool import Pools
from ipc.settings import Settings

log = structlog.get_logger()

READ_SECONDS = 30.0

T = TypeVar("T")


class ConfigurationRefused(Exception):
    """The files will not do. `problems` are sentences with their places, sorted."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(slots=True)
class Configuration:
    """Owns the active registry and how it is replaced."""

    settings: Settings
    control: Control
    policy: PolicyEngine
    pools: Pools
    registry: Registry
    _turn: trio.Lock

    async def load(self) -> None:
        """Read everything again and swap. Raises ConfigurationRefused; then nothing has changed."""
        async with self._turn:
            registry, generation, sources = await self._prepare()
            try:
                await self.policy.load(sources)
            except PolicyRefused as error:
                raise ConfigurationRefused(list(error.problems)) from None
            self.registry = registry
            self.pools.require_generation(generation)
            log.info("configuration is active", actions=len(registry), policy_version=self.policy.policy_version)

    async def _prepare(self) -> tuple[Registry, int, PolicySources]:
        settings = self.settings
        manifests, trusted, sources = await _in_thread(lambda: _read(settings))
        folder = Path(settings.manifests_dir)
        try:
            loaded = await self.control.load_modules(
                module_files(manifests, Path(settings.modules_dir or folder / "modules"))
            )
        except SupervisorSilent as error:
            raise ConfigurationRefused([str(error)]) from None
        refused = [str(problem) for problem in module_problems(manifests, loaded.verdicts)]
        if refused:
            raise ConfigurationRefused(refused)
        registry = await _in_thread(lambda: Registry.build(manifests, loaded.verdicts, trusted))
        return registry, loaded.generation, sources


def _read(settings: Settings) -> tuple[Sequence[Manifest], Trusted, PolicySources]:
    folder = Path(settings.manifests_dir)
    manifests, problems = load_manifests(folder, has_proxy=settings.egress_proxy_url is not None)
    trusted, more = load_trusted(folder)
    found = [str(problem) for problem in sorted([*problems, *more])]
    try:
        policy = read_policy(settings.policy_dir)
    except PolicyRefused as error:
        raise ConfigurationRefused([*found, *error.problems]) from None
    if found:
        raise ConfigurationRefused(found)
    return manifests, trusted, policy.sources


async def _in_thread(read: Callable[[], T]) -> T:
    with trio.move_on_after(READ_SECONDS):
        try:
            return await trio.to_thread.run_sync(read, abandon_on_cancel=True)
        except OSError as error:
            raise ConfigurationRefused([f"the configuration can't be read: {error}"]) from None
    raise ConfigurationRefused([f"the configuration was not read within {READ_SECONDS:g} s"])
