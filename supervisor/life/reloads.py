"""Reloads: one at a time, prepared by every front, put in force by all or none, the outcome returned to its requester.

A reload reads manifests, policy and the configuration file again: of the latter operators, principals, webhooks and
private networks follow, other settings need a restart and are named. Once every front has said that it can, the one
that was asked writes the event and puts it in force, then the others do, and the notary: a refusal by any, and evidence
that can't be written, leave all as they were. A front that fails after that is ended, since it would go on with what is
not in force any more; its successor reads the files.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import NoReturn

import trio
from msgspec.structs import replace

from ipc.configuration.networks import NetworkSettings
from ipc.messages.control import FinishReload, FollowSettings, Reload, ReloadDone, ReloadPrepared, RequestReload
from ipc.reloadable import with_reloadable
from supervisor.keepers.fronts import FrontLife
from supervisor.logs import log
from supervisor.settings.rereading import RereadFile
from supervisor.state import SupervisorState

MAX_WAITING = 8
SILENT = "a front did not answer"
RELOAD_SECONDS = 120.0
"""A new module may have to be compiled; one that takes longer is a failed reload."""


@dataclass
class _Reload:
    request: RequestReload
    asker: FrontLife | None
    heard: Callable[[ReloadDone], None] | None = None
    """Told of the outcome, besides the front that asked."""
    change: RereadFile = RereadFile()
    """The change that the configuration file asks for."""
    prepared: set[str] = field(default_factory=set)
    """Ids of fronts that can put it in force."""
    outcomes: dict[str, ReloadDone] = field(default_factory=dict)


Follow = Callable[[FollowSettings | None, list[FrontLife]], Awaitable[None]]
Around = Callable[[], AbstractContextManager[object]]
UseNetworks = Callable[[Iterable[NetworkSettings]], None]


class Reloads:
    """Serialises reloads. `follow` brings new settings to all but the fronts that took part."""

    def __init__(self, state: SupervisorState, follow: Follow) -> None:
        self.around: Around = nullcontext
        """Entered for each reload, and left with it; set before `run`."""
        self.use_networks: UseNetworks = lambda _: None
        """Called with the private networks whose files of TLS workers must have; set before `run`."""
        self.last_error: str | None = None
        """Why the last reload changed nothing."""
        self._state = state
        self._follow = follow
        self._queue, self._queued = trio.open_memory_channel[_Reload](MAX_WAITING)
        self._active: _Reload | None = None
        self._fronts: list[FrontLife] = []

    def set_fronts(self, fronts: list[FrontLife]) -> None:
        """The fronts that serve now; no answer is expected of others."""
        self._fronts = fronts
        self._state.condition.notify_all()

    def request(
        self, request: RequestReload, asker: FrontLife | None, heard: Callable[[ReloadDone], None] | None = None
    ) -> None:
        """Ask for a reload; the answer goes to `asker` and `heard`, if there are any, and to the log."""
        reload = _Reload(request, asker, heard)
        try:
            self._queue.send_nowait(reload)
        except trio.WouldBlock:
            self._tell(reload, ReloadDone(request.request_id, "too many reloads are waiting", 0, ""))

    def answer_reloaded(self, front: FrontLife, message: ReloadDone) -> None:
        """Take a front's outcome. An outcome for no reload in progress came too late and is ignored."""
        if self._active is not None and message.request_id == self._active.request.request_id:
            self._active.outcomes[front.front_id] = message
            self._state.condition.notify_all()

    def answer_prepared(self, front: FrontLife, message: ReloadPrepared) -> None:
        """A front could put a reload in force."""
        if self._active is not None and message.request_id == self._active.request.request_id:
            self._active.prepared.add(front.front_id)
            self._state.condition.notify_all()

    async def run(self) -> NoReturn:
        """Take one reload after the other."""
        while True:
            self._active = reload = await self._queued.receive()
            with self.around():
                outcome = await self._perform(reload, trio.current_time() + RELOAD_SECONDS)
                self.last_error = outcome.error
            self._active = None
            self._tell(reload, outcome)

    async def _perform(self, reload: _Reload, deadline: float) -> ReloadDone:
        """By all fronts that serve now, or by none."""
        if self._state.rereading is not None:
            reload.change = await self._state.rereading.look(self._state.settings)
        # A front that has been told to stop would take a Reload for a broken protocol.
        fronts = self._fronts if self._state.lifecycle.may_replace else []
        if not fronts:
            return _failed(reload, "no front is serving")
        # Before any front asks for modules: its answer then names workers that have the files of both configurations.
        fresh = reload.change.reloadable
        before = self._state.settings.egress.networks
        self.use_networks(before if fresh is None else (*before, *fresh.networks))
        first = reload.asker if reload.asker in fronts else fronts[0]
        assert first is not None
        others = [front for front in fronts if front is not first]
        for front in fronts:
            front.post(_order(reload, waits=bool(others), tells=front is first))
        error = await self._prepared(reload, fronts, deadline) if others else None
        outcome = await self._finish(reload, [first], error, deadline)
        if outcome.error is None:
            self._keep(reload.change)
            await self._finish(reload, others, None, deadline)
            for front in others:
                await self._end_unless_followed(front, reload.outcomes.get(front.front_id))
            new = reload.change.reloadable
            message = None if new is None else FollowSettings(reload.request.request_id, new.without_addresses)
            await self._follow(message, fronts)
        else:
            await self._finish(reload, others, outcome.error, deadline)
        self.use_networks(self._state.settings.egress.networks)
        return replace(outcome, changed=reload.change.changed, needs_restart=reload.change.needs_restart)

    def _keep(self, change: RereadFile) -> None:
        """Keep the change for processes that start from now on."""
        if change.reloadable is not None and change.configured is not None:
            assert self._state.rereading is not None
            self._state.settings = with_reloadable(self._state.settings, change.reloadable)
            self._state.rereading.keep(change.configured)

    async def _prepared(self, reload: _Reload, fronts: list[FrontLife], deadline: float) -> str | None:
        """Returns once each front has said whether it can, or has ended; with an error when one can't."""
        told = {front.front_id for front in fronts}
        with trio.move_on_at(deadline):
            await self._state.condition.until(lambda: self._awaited(told) <= {*reload.prepared, *reload.outcomes})
        errors = [outcome.error for outcome in reload.outcomes.values() if outcome.error is not None]
        return errors[0] if errors else None if told <= reload.prepared else SILENT

    async def _finish(
        self, reload: _Reload, fronts: list[FrontLife], error: str | None, deadline: float
    ) -> ReloadDone:  # fmt: skip
        """Have these put it in force, or with an error leave it; returns what the last one said once each has, or has
        ended."""
        for front in fronts:
            if front.front_id in reload.prepared and front.front_id not in reload.outcomes:
                front.post(FinishReload(reload.request.request_id, error))
        told = {front.front_id for front in fronts}
        with trio.move_on_at(deadline):
            await self._state.condition.until(lambda: self._awaited(told) <= set(reload.outcomes))
        said = [reload.outcomes[one] for one in told if one in reload.outcomes]
        if error is not None or len(said) < len(told) or not said:
            return _failed(reload, error or SILENT)
        return said[0] if said[0].error is None else _failed(reload, said[0].error)

    def _awaited(self, told: set[str]) -> set[str]:
        return told & {front.front_id for front in self._fronts}

    @staticmethod
    async def _end_unless_followed(front: FrontLife, outcome: ReloadDone | None) -> None:
        if outcome is not None and outcome.error is None:
            return
        error = "no answer" if outcome is None else outcome.error
        log.error(f"{front.name} is killed: it did not apply a reload", error=error)
        if front.child is not None:
            front.child.kill()
            await front.child.wait()

    def _tell(self, reload: _Reload, outcome: ReloadDone) -> None:
        by, trace_id = reload.request.requested_by, reload.request.trace_id
        more: dict[str, object] = {} if trace_id is None else {"trace_id": trace_id}
        if outcome.error is None:
            settings = {"settings": list(outcome.changed)} if outcome.changed else {}
            log.info(
                "reloaded", actions=outcome.actions, policy_version=outcome.policy_version, by=by, **settings, **more
            )
            if outcome.needs_restart:
                log.warning("settings have changed that need a restart", settings=list(outcome.needs_restart))
        else:
            log.error("reload failed, the earlier state stays active", error=outcome.error, by=by, **more)
        if reload.asker is not None:
            reload.asker.post(outcome)
        if reload.heard is not None:
            reload.heard(outcome)


def _failed(reload: _Reload, error: str) -> ReloadDone:
    return ReloadDone(reload.request.request_id, error, 0, "")


def _order(reload: _Reload, *, waits: bool, tells: bool) -> Reload:
    asked, change = reload.request, reload.change
    return Reload(
        asked.request_id, asked.requested_by, asked.operator_jkt, asked.proof_jti, asked.trace_id, waits=waits,
        tells=tells, reloadable=change.reloadable and change.reloadable.without_addresses, problems=change.problems,
        changed=change.changed, needs_restart=change.needs_restart,
        rolled_back=asked.rolled_back,
    )  # fmt: skip
