"""Previews: a call goes the way of one that is made up to its decision, and no further.

Guarantees that a preview debits no budget, holds nothing and runs nothing, and that it leaves one event before it is
answered. Its refusals are those of the call.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from contract.noun import LEFT_OUT
from contract.previews import CallPreview
from frontend.actions.planning import Draft, build_plan
from frontend.actions.sends import sent_request
from frontend.actions.supposed import lease_of, mapping_of
from frontend.auth.authentication import Caller, OperatorCaller
from frontend.auth.lease import Lease
from frontend.calls.audit_writer import AuditWriter, bounded
from frontend.calls.cap_previews import judged_by_caps
from frontend.calls.deciding import denial_of
from frontend.calls.pipeline import Pipeline
from frontend.calls.record import CallRecord
from frontend.calls.standing import lifted, standing_of_preview
from frontend.contract.previews import CallToPreview
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.limits.admission import Place
from frontend.limits.rates import TooMuch
from frontend.notary.in_force import NotaryFacts
from frontend.policy.engine import PolicyEngine
from frontend.telemetry.logs import log
from ipc.evidence.events import ACTION_PREVIEWED
from ipc.keys.shown import shown_plan
from ipc.settings import Settings

NOT_FOR_AGENTS: Final = "agents may not preview this action: its manifest does not say preview: true"

Reading = Callable[[CallRecord], Awaitable[tuple[bytes, Lease, int]]]
"""Finds what the preview is of: the request's bytes, the lease and the epoch."""
Writing = Callable[[CallRecord, str, dict[str, Any]], Awaitable[None]]
"""Writes the event of this decision with these fields."""


class Previewing:
    """Previews for operators and agents. Raises GateError as a call does, and evidence_store_unavailable."""

    def __init__(
        self, pipeline: Pipeline, policy: PolicyEngine, journal: AuditWriter, known: NotaryFacts,
        settings: Callable[[], Settings],
    ) -> None:  # fmt: skip
        """`policy` is that of the pipeline, without the metrics of its decisions."""
        self.deciding = replace(pipeline.deciding, policy=policy)
        self._admission, self._clock, self._weakened = pipeline.admission, pipeline.clock, pipeline.weakened
        self._notary = pipeline.notary
        self._journal = journal
        self._known = known
        self._settings = settings

    async def for_agent(self, request: Request, caller: Caller, action_id: str) -> CallPreview:
        """The preview of a call that this agent could make, where the action's manifest lets agents preview it."""
        with self._admission.enter() as place:
            place.belongs_to(caller.lease.principal, caller.lease.session_id)

            async def reading(record: CallRecord) -> tuple[bytes, Lease, int]:
                record.lease = caller.lease
                action = self.deciding.resolve(record)
                if not action.manifest.preview:
                    raise GateError("policy_denied", deny_reason=NOT_FOR_AGENTS)
                most = action.max_request_bytes
                place.holds_body(most if request.body_length is None else min(most, request.body_length))
                sent = await request.read_body(most)
                place.has_body(len(sent))
                return sent, caller.lease, caller.epoch

            async def writing(record: CallRecord, decision: str, fields: dict[str, Any]) -> None:
                await self._journal.previewed(record.event(decision, event_type=ACTION_PREVIEWED, **fields))

            record = self._record(action_id, request.uid)
            record.lease = caller.lease
            preview = await self._preview(record, place, reading, writing)
            # SECURITY: the sums of others are no agent's to know; the decision tells what these caps make of its call.
            return msgspec.structs.replace(preview, caps=LEFT_OUT)

    async def for_operator(self, form: CallToPreview, operator: OperatorCaller, action_id: str) -> CallPreview:
        """The preview of a call that this principal could make; its lease is supposed."""
        with self._admission.enter(while_draining=True) as place:
            place.belongs_to(f"operator:{operator.name}", f"operator:{operator.name}")

            async def reading(record: CallRecord) -> tuple[bytes, Lease, int]:
                mapping = mapping_of(self._settings(), form.principal, [])
                if form.scopes is not None:
                    mapping = msgspec.structs.replace(mapping, scopes=tuple(form.scopes))
                sent, action = form.request or b"", self.deciding.resolve(record)
                if len(sent) > action.max_request_bytes:
                    raise GateError("body_too_large")
                return sent, lease_of(mapping, None), self._known.epoch

            async def writing(record: CallRecord, decision: str, fields: dict[str, Any]) -> None:
                caller = record.caller()
                facts = {name: value for name, value in record.facts().items() if name not in caller}
                named = {"action_id": caller.get("action_id"), "supposed_principal": form.principal}
                event = self._journal.operator_event(
                    ACTION_PREVIEWED, operator, decision=decision, **facts, **named, **fields
                )  # fmt: skip
                await self._journal.previewed(event)

            return await self._preview(self._record(action_id, None), place, reading, writing)

    def _record(self, action_id: str, uid: int | None) -> CallRecord:
        is_registered = self.deciding.registry().get(action_id) is not None
        return CallRecord(action_id, self._weakened, uid=uid, is_registered=is_registered)

    async def _preview(self, record: CallRecord, place: Place, reading: Reading, writing: Writing) -> CallPreview:
        try:
            sent, lease, epoch = await reading(record)
            preview = await self._previewed(record, place, sent, lease, epoch)
        except TooMuch:
            raise
        except GateError as error:
            decision = "error" if error.status >= 500 else "deny"
            reason = error.cause or error.extra.get("reason")
            more = {"error_code": error.code, "deny_reason": error.extra.get("deny_reason"), "reason": reason}
            await writing(record, decision, bounded(more))
            raise
        decision = "pending_approval" if preview.decision == "hold" else preview.decision
        denied = {"error_code": "policy_denied", "deny_reason": preview.deny_reason} if decision == "deny" else {}
        await writing(record, decision, bounded(denied))
        log.info("a call was previewed", action_id=record.action_id, principal=preview.principal, decision=decision)
        return preview

    async def _previewed(
        self, record: CallRecord, place: Place, sent: bytes, lease: Lease, epoch: int
    ) -> CallPreview:  # fmt: skip
        assert record.action is not None
        drafted: Draft | None = None
        denial: GateError | None = None
        caps: tuple[dict[str, Any], ...] = ()
        try:
            drafted = await self.deciding.drafted(record, sent, record.action, lease, epoch, place.owners)
            decision = await self.deciding.decide(record, lease, drafted)
            decision, caps = await judged_by_caps(self._notary, record.action_id, record.caps, decision)
            record.decision = decision
            denial = denial_of(decision, drafted)
        except GateError as error:
            if error.code != "policy_denied":
                raise
            denial = error
        if denial is None and record.calls_before is None:
            record.calls_before = await self.deciding.budgets.snapshot(lease)
        if denial is None and record.calls_before is not None and record.calls_before < 1:
            raise GateError("budget_exhausted")
        standing_id = await self._standing(record, lease, drafted) if denial is None else None
        preview = self._answer(record, lease.principal, drafted, denial)
        more: dict[str, Any] = {"caps": caps} if caps else {}
        more |= {} if standing_id is None else {"standing_id": standing_id}
        return msgspec.structs.replace(preview, **more) if more else preview

    async def _standing(self, record: CallRecord, lease: Lease, drafted: Draft | None) -> str | None:
        """The standing approval that would lift a hold; then the record has the decision without it."""
        decision = record.decision
        if drafted is None or decision is None or not decision.requires_approval:
            return None
        found = await standing_of_preview(self._notary, lease, drafted, self.deciding.quorum(decision, drafted.plan))
        if found is not None:
            record.decision = lifted(decision)
        return found

    def _answer(
        self, record: CallRecord, principal: str, drafted: Draft | None, denial: GateError | None
    ) -> CallPreview:  # fmt: skip
        decided, shown, sends = record.decision, None, None
        if drafted is not None and decided is not None:
            plan = record.plan = build_plan(
                drafted, record.trace_id, decided.policy_version, decided.rule, record.calls_before, self._clock.iso(),
                is_held=denial is None and decided.requires_approval,
            )  # fmt: skip
            quorum = self.deciding.quorum(decided, plan) if denial is None and decided.requires_approval else None
            shown = shown_plan(plan, drafted.action.manifest.description or None, quorum)
            sends = sent_request(plan)
        is_held = decided is not None and decided.requires_approval
        return CallPreview(
            principal=principal, action_id=record.action_id, trace_id=record.trace_id,
            decision="deny" if denial is not None else "hold" if is_held else "allow",
            rule=None if decided is None else decided.rule,
            deny_reason=LEFT_OUT if denial is None else str(denial.extra.get("deny_reason")),
            shown=shown, sends=sends,
        )  # fmt: skip
