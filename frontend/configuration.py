"""What a reload swaps: manifests with their modules, and policy. Read whole, swapped whole, or not at all.

Loading collects every problem of every file before it refuses. The active registry is replaced by one assignment
after the policy engine has accepted the new policy, so no call ever sees half of a new configuration.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
import trio

from frontend.actions.modules import module_files, module_problems
from frontend.actions.registry import Registry, load_manifests
from frontend.actions.trust import load_trusted
from frontend.control import Control, SupervisorSilent
from frontend.policy.acl import read_policy
from frontend.policy.engine import PolicyEngine, PolicyRefused, PolicySources
from frontend.pool.pool import Pools
from ipc.settings import Settings

log = structlog.get_logger()


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
        folder = Path(settings.manifests_dir)
        read = partial(load_manifests, folder, has_proxy=settings.egress_proxy_url is not None)
        manifests, problems = await trio.to_thread.run_sync(read)  # milliseconds each: calls go on meanwhile
        trusted, more = load_trusted(folder)
        found = [str(problem) for problem in sorted([*problems, *more])]
        sources: PolicySources | None = None
        try:
            sources = read_policy(settings.policy_dir).sources
        except PolicyRefused as error:
            found += error.problems
        if found or sources is None:
            raise ConfigurationRefused(found)
        try:
            loaded = await self.control.load_modules(
                module_files(manifests, Path(settings.modules_dir or folder / "modules"))
            )
        except SupervisorSilent as error:
            raise ConfigurationRefused([str(error)]) from None
        refused = [str(problem) for problem in module_problems(manifests, loaded.verdicts)]
        if refused:
            raise ConfigurationRefused(refused)
        return Registry.build(manifests, loaded.verdicts, trusted), loaded.generation, sources
