"""Reloads: one at a time, sent to every front, the outcome returned to its requester.

A reload reads manifests and policy again; settings of the gateway itself need a restart. It succeeds when every front
that lives says so.
"""

from dataclasses import dataclass, field
from typing import NoReturn

import trio

from ipc import messages as m
from supervisor.fronts import Front
from supervisor.logs import log
from supervisor.state import State

MAX_WAITING = 8
RELOAD_SECONDS = 120.0
"""A new module may have to be compiled; one that takes longer is a failed reload."""


@dataclass
class _Reload:
    request: m.RequestReload
    asker: Front | None
    outcomes: dict[str, m.Reloaded] = field(default_factory=dict)


class Reloads:
    """Serialises reloads. `fronts()` are the fronts that live at the moment."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._queue, self._queued = trio.open_memory_channel[_Reload](MAX_WAITING)
        self._active: _Reload | None = None
        self._fronts: list[Front] = []

    def set_fronts(self, fronts: list[Front]) -> None:
        """The fronts that serve now; no answer is expected of others."""
        self._fronts = fronts
        self._state.condition.notify_all()

    def request(self, request: m.RequestReload, asker: Front | None) -> None:
        """Ask for a reload; the answer goes to `asker`, if there is one, and to the log."""
        reload = _Reload(request, asker)
        try:
            self._queue.send_nowait(reload)
        except trio.WouldBlock:
            self._tell(reload, m.Reloaded(request.request_id, "too many reloads are waiting", 0, ""))

    def answer_reloaded(self, front: Front, message: m.Reloaded) -> None:
        """Take a front's outcome. An outcome for no reload in progress came too late and is ignored."""
        if self._active is not None and message.request_id == self._active.request.request_id:
            self._active.outcomes[front.front_id] = message
            self._state.condition.notify_all()

    async def run(self) -> NoReturn:
        """Take one reload after the other."""
        while True:
            self._active = reload = await self._queued.receive()
            # A front that has been told to stop would take a Reload for a broken protocol.
            fronts = self._fronts if self._state.lifecycle.may_replace else []
            told = {front.front_id for front in fronts}
            asked = reload.request
            for front in fronts:
                front.post(m.Reload(asked.request_id, asked.requested_by, asked.operator_jkt, asked.proof_jti))
            with trio.move_on_after(RELOAD_SECONDS):
                await self._state.condition.until(lambda: self._awaited(told) <= set(reload.outcomes))  # noqa: B023
            self._active = None
            self._tell(reload, self._summary(reload, told))

    def _awaited(self, told: set[str]) -> set[str]:
        return told & {front.front_id for front in self._fronts}

    def _summary(self, reload: _Reload, told: set[str]) -> m.Reloaded:
        outcomes = list(reload.outcomes.values())
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if len(outcomes) < len(told):
            errors.append("a front did not answer")
        if not told:
            errors.append("no front is serving")
        if errors:
            return m.Reloaded(reload.request.request_id, errors[0], 0, "")
        return m.Reloaded(reload.request.request_id, None, outcomes[0].actions, outcomes[0].policy_version)

    def _tell(self, reload: _Reload, outcome: m.Reloaded) -> None:
        by = reload.request.requested_by
        if outcome.error is None:
            log.info("reloaded", actions=outcome.actions, policy_version=outcome.policy_version, by=by)
        else:
            log.error("reload failed, the earlier state stays active", error=outcome.error, by=by)
        if reload.asker is not None:
            reload.asker.post(outcome)
