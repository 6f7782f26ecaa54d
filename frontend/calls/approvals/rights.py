"""Holds whose principal loses the right to their action: they wait no more.

A change of the policy's data notes what it took away; the next look ends what is held by that, and a last one what was
decided before the change and held after that look. Guarantees that nothing this front knows to be lost is approved by
it: approving looks first, and is refused where that fails. Reads the access lists alone: what rules say beyond them was
decided when the call was held.
"""

from dataclasses import dataclass, field

import trio

from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from frontend.policy.data import PolicyData
from frontend.telemetry.logs import log
from ipc.approvals import PENDING
from ipc.operations.holds import ListHolds, VoidHolds

WILDCARD = "*"
MOST_HOLDS = 10_000
"""The bound of `approvals.max_pending`."""
LATE_SECONDS = 20.0
"""A call that was decided before a change is held within this time or never: the notary is waited for no longer."""


@dataclass(slots=True)
class Loss:
    """Data before and after a change that took rights away."""

    before: PolicyData
    after: PolicyData
    last_look_at: float
    """When no call is held any more that was decided before it."""
    is_ended: bool = False
    """The calls that were held when it was noted are void."""

    def is_of(self, principal: str, action_id: str, now: PolicyData) -> bool:
        """True for a right that it took away; once its holds are void, unless it was given back, as `now` says."""
        if not _may_call(principal, action_id, self.before) or _may_call(principal, action_id, self.after):
            return False
        return not self.is_ended or not _may_call(principal, action_id, now)


@dataclass(slots=True)
class LostRights:
    """Rights that changes of the policy took away, each until no call can be held under it."""

    notary: NotaryClient
    _noted: list[Loss] = field(default_factory=list)
    _now: PolicyData = field(default_factory=lambda: PolicyData(""))

    def note(self, before: PolicyData, after: PolicyData) -> None:
        """The data in force was `before`, and is `after`. Costs little where nothing was taken away."""
        self._now = after
        if _takes_away(before, after):
            self._noted.append(Loss(before, after, trio.current_time() + LATE_SECONDS))

    async def end_due(self) -> None:
        """`end` once after each change, and a last time. Raises what `end` raises."""
        if any(not one.is_ended or one.last_look_at <= trio.current_time() for one in self._noted):
            await self.end()

    async def end(self) -> None:
        """End the holds under the noted rights. Raises GateError approval_store_unavailable: the rights stay noted."""
        looked: list[Loss] = []
        # By identity: others may be noted, or ended by another task, meanwhile.
        while noted := [one for one in self._noted if not any(one is other for other in looked)]:
            began = trio.current_time()
            with notary_errors_as("approval_store_unavailable"):
                page = await self.notary.ask(ListHolds((PENDING,), MOST_HOLDS))
                held = [
                    one
                    for one in page.approvals
                    if any(loss.is_of(one.principal, one.action_id, self._now) for loss in noted)
                ]
                if held:
                    await self.notary.ask(VoidHolds(tuple(one.approval_id for one in held)))
            looked += noted
            for loss in noted:
                loss.is_ended = True
            self._noted = [
                one for one in self._noted if one.last_look_at > began or not any(one is other for other in noted)
            ]
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


def _may_call(principal: str, action_id: str, data: PolicyData) -> bool:
    return action_id not in data.denied_actions and action_id in _actions_of(principal, data)


def _actions_of(principal: str, data: PolicyData) -> frozenset[str]:
    """The actions that the access lists let a principal call, as the default policy reads them."""
    entry, shared = data.acl.get(principal), data.acl.get(WILDCARD)
    own = () if entry is None else entry.actions
    inherited = shared.actions if shared is not None and (entry is None or entry.inherits_wildcard) else ()
    return frozenset((*own, *inherited))
