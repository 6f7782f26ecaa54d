"""Holding a call: the plan is stored, the agent gets an approval id, and time runs.

Guarantees, by one operation of the notary: the same call twice is one hold with one debit; a session has a bounded
number of holds; a hold and its event are there together or not at all.
"""

import contextlib
import time
from typing import Any

import msgspec
import trio

from frontend.calls.approvals.record import encode
from frontend.calls.approvals.states import MAX_PENDING_PER_SESSION
from frontend.calls.asking import refusal, repeats, unavailable
from frontend.calls.record import CallRecord
from frontend.clock import TimeSource
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from frontend.telemetry.metrics import HELD, Metrics
from ipc.approvals import PENDING, TTL_SECONDS, HeldBody
from ipc.backends.store import ApprovalRecord
from ipc.configuration.identity_origin import UNKNOWN
from ipc.configuration.quorum import Quorum
from ipc.evidence.kept_values import summary_of
from ipc.keys.shown import shown_quorum
from ipc.messages.exporting import NOTARY_HOLD
from ipc.operations.calls import Refusal, RepeatedCall
from ipc.operations.holds import GetHold, Hold, HoldInForce
from ipc.operations.standing import Lifted
from ipc.plan import SealedPlan
from ipc.texts.identifiers import new


class HoldWriter(msgspec.Struct, frozen=True):
    """Stores pending approvals."""

    clock: TimeSource
    notary: NotaryClient
    metrics: Metrics

    async def hold(
        self, record: CallRecord, sealed: SealedPlan, has_budget: bool, description: str,
        quorum: Quorum | None, *, may_be_lifted: bool = False,
    ) -> ApprovalRecord | Lifted:  # fmt: skip
        """The hold that is in force for this call, with its event; or, if a standing approval may lift it, the word
        that one does. `description`: of the action.

        Raises GateError: replay_detected, invalid_lease, budget_exhausted, budget_session_not_found,
        too_many_pending_approvals, replay_cache_unavailable, budget_store_unavailable, clock_error.
        `record.is_decided` says whether its event is written.
        """
        now, plan = self.clock.now(), sealed.plan
        body = HeldBody.of(
            sealed,
            record.origin or UNKNOWN,
            has_budget=has_budget,
            description=description or None,
            summary=summary_of(record.kept),
            caps=record.caps,
            quorum=quorum,
            keyed=None if record.key is None else record.key.keeps_output,
        )
        approval = ApprovalRecord(
            approval_id=new("apr_"), session_id=plan.session_id, action_id=plan.action_id,
            request_hash=plan.request_hash, state=PENDING, created_at=now, expires_at=now + TTL_SECONDS,
            body=encode(body), principal=plan.principal, epoch=plan.epoch,
        )  # fmt: skip
        needs: dict[str, Any] = {} if quorum is None else {"quorum": shown_quorum(quorum)}
        asked = Hold(
            record.event("pending_approval", **needs), approval, plan.epoch, MAX_PENDING_PER_SESSION, record.proof,
            has_budget, record.calls_per_hour, record.kept, record.caps, record.key,
            may_be_lifted,
        )  # fmt: skip
        asked_at = time.monotonic()
        try:
            held = await self._held(asked)
        except (NotaryUnavailable, NotaryRefused) as error:
            if isinstance(error, NotarySilent):
                record.unanswered = approval.approval_id
                record.proof = None  # it may have been used by this very call, which would look like a replay then
            raise unavailable(asked, error) from None
        if record.trace is not None:
            record.trace.wrote(NOTARY_HOLD, asked_at)
        if isinstance(held, Lifted):
            return held
        record.proof, record.is_decided = None, True
        if isinstance(held, Refusal):
            raise refusal(held, self.metrics)
        if isinstance(held, RepeatedCall):
            raise repeats(record, held)
        if not held.is_repeated:
            self.metrics.approvals.add(HELD)
        return held.approval

    async def _held(self, asked: Hold) -> HoldInForce | Refusal | RepeatedCall | Lifted:
        try:
            return await self.notary.ask(asked)
        except NotarySilent:
            if self.notary.is_silent:
                raise
            # It may be stored all the same: then its agent may as well know of it.
            stored = await self._stored(asked.approval.approval_id)
            if stored is None:
                raise
            return HoldInForce(stored, is_repeated=False)

    async def _stored(self, approval_id: str) -> ApprovalRecord | None:
        stored = None
        with contextlib.suppress(NotaryUnavailable, NotaryRefused), trio.CancelScope(shield=True):
            stored = await self.notary.ask(GetHold(approval_id))
        return stored
