"""Modules of stored plans: a hold outlives the action that made it.

Guarantees that a plan runs only with a module that is trusted now, whether or not an action of the configuration in
force names it. When a reload has removed the action, approving the plan loads its module again by the digest.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from frontend.actions.modules import held_module
from frontend.actions.registry import Registry
from frontend.control import SupervisorLink, SupervisorSilent
from frontend.errors import GateError
from frontend.pool.pool import Pools
from ipc.plan import Plan


class HeldModules(msgspec.Struct, frozen=True):
    """Obtains them. `folder` holds the modules that are not built in."""

    registry: Callable[[], Registry]
    folder: Path
    control: SupervisorLink
    pools: Pools

    async def obtain(self, plan: Plan) -> None:
        """Workers that are leased from now on have the plan's module. Raises GateError: plan_integrity when it is not
        trusted any more, or gone; overloaded when it can't be loaded now."""
        digest = plan.provider_module_digest
        if self.registry().has_module(digest):
            return
        file = held_module(plan, self.folder)
        try:
            loaded = await self.control.load_modules((file,))
        except SupervisorSilent as error:
            raise GateError("overloaded", cause=str(error)) from None
        (verdict,) = loaded.verdicts
        if verdict.verdict == "refused":
            raise GateError("overloaded", cause=f"the plan's module could not be loaded: {verdict.detail}")
        if verdict.verdict != "ok":
            raise GateError("plan_integrity", cause=f"the plan's module is {verdict.verdict}: {verdict.detail}")
        # SECURITY: by the configuration in force now, which a reload may have replaced meanwhile.
        if not (verdict.is_builtin or self.registry().trusts(digest)):
            raise GateError("plan_integrity", cause="the plan's module is not trusted any more")
        self.pools.require_generation(loaded.generation)
