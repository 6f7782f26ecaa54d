"""Reloads of this front, which the supervisor starts, and an operator's request for one.

Guarantees that a configuration comes into force only when its event is durable, that a refused one leaves an event with
the reason, and that the supervisor gets the result. The supervisor queues several requests; every front prepares, and
all put the configuration in force or none.
"""

from dataclasses import dataclass, field
from typing import Any

import trio

from frontend.actions.registry import Registry
from frontend.auth.authentication import OperatorCaller
from frontend.calls.audit_writer import AuditWriter
from frontend.configuration.active import Configuration, ConfigurationRefused, Fresh
from frontend.configuration.manifest_record import ManifestRecord, changes, digests_of
from frontend.control import SupervisorLink, SupervisorSilent
from frontend.deadlines import ConfigurationDeadlines
from frontend.errors import GateError
from frontend.policy.acl import PolicyFiles
from frontend.telemetry.logs import log, trace_id, trace_now
from ipc.evidence.events import ACTION_ROLLED_BACK, ADMIN_RELOAD
from ipc.messages.control import FinishReload, Reload, ReloadDone, ReloadPrepared, RequestReload
from ipc.messages.manifests import ActionRollback
from ipc.texts.identifiers import new


@dataclass(slots=True)
class ReloadRequests:
    """Asks for reloads and performs them."""

    configuration: Configuration
    control: SupervisorLink
    journal: AuditWriter
    record: ManifestRecord
    deadlines: ConfigurationDeadlines = ConfigurationDeadlines()
    _mine: dict[str, bool] = field(default_factory=dict)
    """Reloads that operators asked for here and wait for -> whether this front has left an event of it."""
    _prepared: dict[str, trio.Event] = field(default_factory=dict)
    """Reloads that wait for the other fronts."""
    _finishes: dict[str, FinishReload] = field(default_factory=dict)

    async def request(self, operator: OperatorCaller) -> ReloadDone:
        """Have every front reload. Raises GateError reload_failed, with the reason in log and evidence."""
        who = f"operator:{operator.name}"
        asked = RequestReload(new("reload_"), who, operator.jkt, operator.proof_jti, trace_now())
        self._mine[asked.request_id] = False
        try:
            outcome = await self.control.reload(asked)
            problem = outcome.error
        except SupervisorSilent as error:
            outcome, problem = None, str(error)
        finally:
            is_told = self._mine.pop(asked.request_id)
        if outcome is not None and problem is None:
            return outcome
        if not is_told:  # it was never performed here, or its outcome is unknown
            await self._failed(asked, problem or "")
        raise GateError("reload_failed", cause=problem)

    async def perform(self, message: Reload) -> None:
        """Read everything again and put it in force, or say why not. Raises nothing but Cancelled."""
        problem: str | None = None
        trace_id.set(message.trace_id)  # this task is the reload's own

        async def commit(registry: Registry, files: PolicyFiles) -> None:
            if message.rolled_back is not None:
                _check_rollback(message.rolled_back, registry)
            if message.waits:
                await self._until_all_can(message.request_id)
            if message.tells:
                await self._tell_change(message, registry, files)
            elif not self.record.is_told(registry):
                raise ConfigurationRefused(["the manifests have changed since another front read them"])

        fresh = Fresh(message.reloadable, message.problems)
        try:
            await self.configuration.load(commit, within=self.deadlines.prepare_seconds, fresh=fresh)
        except ConfigurationRefused as error:
            problem = str(error)
            log.error("the configuration was not reloaded; the previous one stays active", problems=error.problems)
        except GateError as error:
            problem = f"its evidence could not be written: {error.code}"
            log.error("the configuration was not reloaded; the previous one stays active", cause=error.cause)
        except Exception as error:  # an internal error in reading files must not stop the front
            problem = f"unexpected error: {type(error).__name__}"
            log.exception("the configuration was not reloaded; the previous one stays active")
        if problem is not None and message.tells:
            await self._failed(message, problem)
        elif message.tells:
            self.record.tell_supervisor(self.configuration.current.registry)
        version = self.configuration.policy.policy_version
        self.control.post(ReloadDone(message.request_id, problem, len(self.configuration.current.registry), version))

    def finish(self, message: FinishReload) -> None:
        """The supervisor has the result of every front."""
        if message.request_id in self._prepared:
            self._finishes[message.request_id] = message
            self._prepared[message.request_id].set()

    async def _until_all_can(self, request_id: str) -> None:
        """Returns once every front can put it in force. Raises ConfigurationRefused when one can't."""
        finished = self._prepared[request_id] = trio.Event()
        try:
            self.control.post(ReloadPrepared(request_id))
            with trio.move_on_after(self.deadlines.finish_seconds):
                await finished.wait()
            message = self._finishes.pop(request_id, None)
        finally:
            del self._prepared[request_id]
        if message is None:
            raise ConfigurationRefused(["the other fronts did not get ready in time"])
        if message.error is not None:
            raise ConfigurationRefused([message.error])

    async def _tell_change(self, message: Reload, registry: Registry, files: PolicyFiles) -> None:
        """Write the events of what comes into force now. Raises GateError."""
        if (done := message.rolled_back) is not None:
            moved = {"from": done.replaced, "to": done.digest, "by": done.by}
            await self.journal.own(
                ACTION_ROLLED_BACK, principal=message.requested_by, action_id=done.action_id,
                action_version=done.version, change=moved,
            )  # fmt: skip
        change = _change(message, changes(self.configuration.current.registry, registry))
        await self._tell(message, policy_version=files.data.policy_version, change=change)
        self.record.note(registry)

    async def _failed(self, message: Reload | RequestReload, problem: str) -> None:
        try:
            await self._tell(message, decision="error", error_code="reload_failed", reason=problem)
        except GateError as error:
            log.error("a reload that failed left no event", cause=error.cause)

    async def _tell(self, message: Reload | RequestReload, **fields: Any) -> None:
        if message.operator_jkt is not None:
            fields |= {
                "identity_method": "operator",
                "operator_sender_binding": message.operator_jkt,
                "operator_proof_jti": message.proof_jti,
            }
        await self.journal.own(ADMIN_RELOAD, principal=message.requested_by, **fields)
        if message.request_id in self._mine:
            self._mine[message.request_id] = True


def _check_rollback(done: ActionRollback, registry: Registry) -> None:
    """Raises ConfigurationRefused unless the manifest that was read is the one that is rolled back to."""
    if digests_of(registry).get(done.action_id) != done.digest:
        raise ConfigurationRefused([f"the manifest of {done.action_id} is not the one that it is rolled back to"])


def _change(message: Reload, manifests: dict[str, Any]) -> dict[str, Any] | None:
    """The change for evidence: names of settings, digests of manifests. None if nothing has changed."""
    named = {"settings": list(message.changed), "needs_restart": list(message.needs_restart), "manifests": manifests}
    return {name: changed for name, changed in named.items() if changed} or None
