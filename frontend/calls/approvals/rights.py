"""Holds whose principal loses the right to their action: they wait no more.

A change of the policy's data notes what it took away; the next look ends what is held by that. Guarantees that nothing
this front knows to be lost is approved by it: approving looks first, and is refused where that fails. Reads the access
lists alone: what rules say beyond them was decided when the call was held.
"""

from dataclasses import dataclass, field

from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from frontend.policy.data import PolicyData
from frontend.telemetry.logs import log
from ipc.approvals import PENDING
from ipc.operations.holds import ListHolds, VoidHolds

WILDCARD = "*"
MOST_HOLDS = 10_000
"""The bound of `approvals.max_pending`."""
Lost = tuple[PolicyData, PolicyData]
"""Data before and after a change."""


@dataclass(slots=True)
class LostRights:
    """Rights that changes of the policy took away, each until the calls held under it are void."""

    notary: NotaryClient
    _noted: list[Lost] = field(default_factory=list)

    def note(self, before: PolicyData, after: PolicyData) -> None:
        """The data in force was `before`, and is `after`. Costs little where nothing was taken away."""
        if _takes_away(before, after):
            self._noted.append((before, after))

    async def end(self) -> None:
        """End the holds under the noted rights. Raises GateError approval_store_unavailable: the rights stay noted."""
        while self._noted:
            noted = tuple(self._noted)
            with notary_errors_as("approval_store_unavailable"):
                page = await self.notary.ask(ListHolds((PENDING,), MOST_HOLDS))
                held = [one for one in page.approvals if any(_is_lost(one.principal, one.action_id, *n) for n in noted)]
                if held:
                    await self.notary.ask(VoidHolds(tuple(one.approval_id for one in held)))
            # By identity: another round may have ended these, and others may have been noted meanwhile.
            self._noted = [one for one in self._noted if not any(one is ended for ended in noted)]
            for one in held:
                log.warning(
                    "the right to a held call is revoked", approval_id=one.approval_id, action_id=one.action_id,
                    principal=one.principal,
                )  # fmt: skip


def _takes_away(before: PolicyData, after: PolicyData) -> bool:
    if before.acl == after.acl and before.denied_actions == after.denied_actions:
        return False
    names = {*before.acl, *after.acl, WILDCARD}
    return bool(after.denied_actions.keys() - before.denied_actions.keys()) or any(
        _actions_of(name, before) - _actions_of(name, after) for name in names
    )


def _is_lost(principal: str, action_id: str, before: PolicyData, after: PolicyData) -> bool:
    return _may_call(principal, action_id, before) and not _may_call(principal, action_id, after)


def _may_call(principal: str, action_id: str, data: PolicyData) -> bool:
    return action_id not in data.denied_actions and action_id in _actions_of(principal, data)


def _actions_of(principal: str, data: PolicyData) -> frozenset[str]:
    """The actions that the access lists let a principal call, as the default policy reads them."""
    entry, shared = data.acl.get(principal), data.acl.get(WILDCARD)
    own = () if entry is None else entry.actions
    inherited = shared.actions if shared is not None and (entry is None or entry.inherits_wildcard) else ()
    return frozenset((*own, *inherited))
