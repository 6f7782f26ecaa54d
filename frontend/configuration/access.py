"""Changes of access rights by operators while the gateway runs: grants, revocations, exceptions from approval.

Guarantees of each change: it is made on the policy in force and on no other, it is compiled and probed before anything
is written, it is in evidence before it takes effect, it is on the disk, and it decides from the next question on. A
refused change has no effect. Never touches rules, and never a file that was edited meanwhile.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from frontend.auth.authentication import OperatorCaller
from frontend.calls.audit_writer import AuditWriter
from frontend.configuration.active import Configuration
from frontend.control import SupervisorLink
from frontend.deadlines import ConfigurationDeadlines
from frontend.errors import GateError, errors_as
from frontend.files.exclusive import NotChanged
from frontend.policy import edit
from frontend.policy.acl import PolicyFiles
from frontend.policy.data import PolicyData
from frontend.policy.engine import PolicyRefused, PolicyUnreached
from frontend.policy.file import DataTurn
from frontend.policy.sinks import believed, for_engine
from frontend.telemetry.logs import log
from ipc.evidence import events
from ipc.messages.control import PolicyEdited


class _AccessChange(msgspec.Struct, frozen=True):
    """One change: its evidence, and its function on the data."""

    event_type: str
    operator: OperatorCaller
    found: dict[str, Any]
    edit: Callable[[PolicyData], PolicyData]


class Authority(msgspec.Struct, frozen=True):
    """Reads and changes the data of the policy in force. Methods that change it return it as it is then, and raise
    GateError: policy_changed_on_disk, policy_refused, policy_not_writable, overloaded, evidence_store_unavailable,
    clock_error; invalid_input for more than a policy may have; policy_engine_unavailable and policy_engine_timeout
    where OPA decides and did not take it: before its event nothing has changed; after it the change comes into force as
    soon as OPA takes it, and nothing is decided until then."""

    configuration: Configuration
    control: SupervisorLink
    journal: AuditWriter
    deadlines: ConfigurationDeadlines = ConfigurationDeadlines()

    @property
    def data(self) -> PolicyData:
        """The data of the policy in force."""
        return self._in_force().data

    async def grant(self, principal: str, actions: tuple[str, ...], operator: OperatorCaller) -> PolicyData:
        """Let a principal call these registered actions too. Raises unknown_action before anything is done."""
        self._refuse_unregistered(actions, known=())
        change = {"principal": principal, "actions": list(actions)}

        def changed(data: PolicyData) -> PolicyData:
            self._refuse_unregistered(actions, known=())  # a reload may have come in between
            return edit.grant(data, principal, actions, self._sinks_of)

        return await self._change(_AccessChange(events.POLICY_GRANTED, operator, {"change": change}, changed))

    async def revoke(self, principal: str, actions: tuple[str, ...], operator: OperatorCaller) -> PolicyData:
        """Take these actions from a principal. Raises principal_not_found; unknown_action for one that neither the
        principal has nor anybody could have: a name mistyped here must not look like a revocation."""
        change = {"principal": principal, "actions": list(actions)}

        def changed(data: PolicyData) -> PolicyData:
            entry = data.acl.get(principal)
            self._refuse_unregistered(actions, known=() if entry is None else entry.actions)
            try:
                return edit.revoke(data, principal, actions, self._sinks_of)
            except edit.NothingThere:
                raise GateError("principal_not_found") from None

        changed(self.data)
        return await self._change(_AccessChange(events.POLICY_REVOKED, operator, {"change": change}, changed))

    async def allow(self, action_id: str, agent_id: str, operator: OperatorCaller) -> PolicyData:
        """Spare this agent the approval of a registered action. Raises action_not_found."""
        if self.configuration.current.registry.get(action_id) is None:
            raise GateError("action_not_found")
        fields = {"action_id": action_id, "change": {"agent_id": agent_id}}
        act = _AccessChange(
            events.POLICY_ALLOWLIST_ADDED, operator, fields, lambda data: edit.allow(data, action_id, agent_id)
        )
        return await self._change(act)

    async def disallow(self, action_id: str, agent_id: str, operator: OperatorCaller) -> PolicyData:
        """Ask for approval again, whether or not the action is still registered. Raises allowlist_entry_not_found."""
        fields = {"action_id": action_id, "change": {"agent_id": agent_id}}

        def changed(data: PolicyData) -> PolicyData:
            try:
                return edit.disallow(data, action_id, agent_id)
            except edit.NothingThere:
                raise GateError("allowlist_entry_not_found") from None

        changed(self.data)
        return await self._change(_AccessChange(events.POLICY_ALLOWLIST_REMOVED, operator, fields, changed))

    async def change_data(
        self, event_type: str, operator: OperatorCaller, found: dict[str, Any], edit: Callable[[PolicyData], PolicyData]
    ) -> PolicyData:
        """Change the data by this function, which may raise GateError; `found` are members of the event."""
        return await self._change(_AccessChange(event_type, operator, found, edit))

    # ------------------------------------------------------------------ how a change comes into force

    async def _change(self, act: _AccessChange) -> PolicyData:
        async with self._turn() as turn:
            before = await self._as_on_disk()
            wanted = act.edit(before.data)
            if wanted == before.data:
                await self._tell(act, before)
                return before.data
            try:
                after = believed(edit.rewritten(before, wanted), self._sinks_of)
            except edit.PolicyTooLarge as error:
                raise GateError("invalid_input", message=str(error)) from None
            await self._put_in_force(act, after, turn)
        version = after.data.policy_version
        log.info("policy was changed", kind=act.event_type, by=act.operator.name, policy_version=version)
        return after.data

    async def _put_in_force(self, act: _AccessChange, after: PolicyFiles, turn: DataTurn) -> None:
        async def commit() -> None:
            with trio.CancelScope(shield=True):  # what has begun is finished; each wait has its own deadline
                await self._tell(act, after)
                await self._write(act, after, turn)
                # Every front decides by it from now on, or not at all.
                self.configuration.changed_policy(after)
                self.control.post(PolicyEdited(after.sources.digest))

        try:
            await self.configuration.policy.load(for_engine(after), commit)
        except PolicyRefused as error:
            await self._tell_failed(act, "policy_refused", str(error))
            raise GateError("policy_refused", cause=str(error)) from None
        except PolicyUnreached as error:
            await self._tell_failed(act, error.code, str(error))
            raise GateError(error.code, cause=str(error)) from None

    async def _write(self, act: _AccessChange, after: PolicyFiles, turn: DataTurn) -> None:
        try:
            await turn.replace(after.sources.data)
        except NotChanged as error:
            await self._tell_failed(act, "policy_not_writable", str(error))
            raise GateError("policy_not_writable", cause=str(error)) from None

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[DataTurn]:
        """Meanwhile no other task replaces the policy of this front, and no other front the data."""
        lock, seconds = self.configuration.policy_turn, self.deadlines.turn_seconds
        with trio.move_on_after(seconds) as waiting:
            await lock.acquire()
        if waiting.cancelled_caught:
            raise GateError("overloaded", cause=f"the policy has been loading or changing for {seconds:g} s")
        try:
            with errors_as("policy_not_writable", NotChanged):
                async with self.configuration.policy_file.turn() as turn:
                    yield turn
        finally:
            lock.release()

    async def _as_on_disk(self) -> PolicyFiles:
        """The policy in force, if it equals the files on the disk. A change that another front has just written is
        put in force first; a person's edits wait for a reload, which judges them."""
        try:
            files = await self.configuration.policy_file.read()
        except PolicyRefused as error:
            cause = f"the policy on the disk is another one, and would be refused: {error}"
            raise _changed_on_disk(cause) from None
        if files.sources != self._in_force().sources:
            with trio.move_on_after(self.deadlines.others_seconds if self.configuration.memory.others else 0):
                await self.configuration.follow(files.sources.digest)
        if files.sources != self._in_force().sources:
            raise _changed_on_disk("the policy on the disk is not the one in force")
        return self._in_force()

    async def _tell(self, act: _AccessChange, files: PolicyFiles, **fields: Any) -> None:
        version = files.data.policy_version
        await self.journal.operator_act(act.event_type, act.operator, policy_version=version, **act.found, **fields)

    async def _tell_failed(self, act: _AccessChange, code: str, reason: str) -> None:
        fields = act.found | {"decision": "error", "error_code": code, "reason": reason}
        try:
            await self.journal.operator_act(act.event_type, act.operator, **fields)
        except GateError as error:
            log.error("a change of policy that failed left no event", kind=act.event_type, cause=error.cause)

    # ------------------------------------------------------------------ what is registered

    def _in_force(self) -> PolicyFiles:
        files = self.configuration.current.policy_files
        if files is None:
            raise GateError("policy_engine_unavailable", cause="no policy is in force yet")
        return files

    def _sinks_of(self, actions: Iterable[str]) -> frozenset[str]:
        return self.configuration.current.registry.sinks_of(actions)

    def _refuse_unregistered(self, actions: Iterable[str], *, known: tuple[str, ...]) -> None:
        registry = self.configuration.current.registry
        unknown = [name for name in actions if name not in known and registry.get(name) is None]
        if unknown:
            raise GateError("unknown_action", message=f"not registered: {', '.join(unknown[:5])}")


def _changed_on_disk(cause: str) -> GateError:
    message = "the files of the policy have been edited since they were loaded; reload first"
    return GateError("policy_changed_on_disk", cause=cause, message=message)
