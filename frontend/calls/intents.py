"""Intents without a receipt: what is known of them, and a verifier that looks again at what they were to leave.

A look executes no plan and decides no intent: its event says what was seen, and the intent stays unresolved until an
operator resolves it. `VERIFIERS` (ipc/verifiers.py) says which verifier can look again.
"""

from typing import Final

import msgspec

from frontend.auth.authentication import OperatorCaller, asker_of
from frontend.calls.audit_writer import AuditWriter
from frontend.errors import GateError, errors_as
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotarySilent, notary_errors_as
from frontend.notary.sealed import missing
from frontend.pool.pool import NoWorker, Pools
from ipc.evidence.events import INTENT_VERIFICATION
from ipc.evidence.records import IntentDetail
from ipc.operations.calls import NoSuchWorker
from ipc.operations.intents import Looked, ShowIntent, Unverifiable, VerifyIntent
from ipc.verifiers import VERIFIERS

NOTHING_KEPT: Final = "nothing to compare with was kept with the intent"


class Intents(msgspec.Struct, frozen=True):
    """Unresolved intents, of all fronts."""

    notary: NotaryClient
    pools: Pools
    journal: AuditWriter
    worker_wait_seconds: float

    async def show(self, intent_id: str, operator: OperatorCaller) -> IntentDetail:
        """Return all that is known of an intent. Raises GateError: intent_not_found, sealed, ledger_unavailable."""
        with notary_errors_as("ledger_unavailable"):
            intent = await self.notary.ask(ShowIntent(intent_id, asker_of(operator)))
        if intent is None:
            raise await missing(self.notary, "intent_not_found", intent_id)
        return intent

    async def verify(self, intent_id: str, operator: OperatorCaller) -> Looked:
        """Have its verifier look again. Raises GateError: intent_not_found, sealed, intent_under_way,
        intent_not_verifiable, overloaded, ledger_unavailable, evidence_store_unavailable."""
        intent = await self.show(intent_id, operator)
        if intent.is_under_way:
            raise GateError("intent_under_way")
        if (why := why_not(intent)) is not None:
            raise GateError("intent_not_verifiable", message=why)
        event = self.journal.operator_event(INTENT_VERIFICATION, operator)
        with errors_as("overloaded", NoWorker), notary_errors_as("evidence_store_unavailable"):
            # SECURITY: a worker that has run strangers' code may have been taken over, and would be believed.
            async with self.pools.lease(
                "fs", "process", self.worker_wait_seconds, (f"operator {operator.name}",)
            ) as worker:  # fmt: skip
                try:
                    answer = await self.notary.ask(VerifyIntent(intent_id, worker.worker_id, event))
                except NotarySilent:
                    self.pools.kill(worker, "it does not tell what it sees")
                    raise
        if isinstance(answer, NoSuchWorker):
            raise GateError("overloaded", cause="the worker ended before it had told what it saw")
        if isinstance(answer, Unverifiable):
            raise GateError(answer.code)
        return answer


def why_not(intent: IntentDetail) -> str | None:
    """Why its verifier can't look again; None where it can."""
    if intent.expected is not None:
        return None
    kind = VERIFIERS.get(intent.verifier_kind or "")
    return NOTHING_KEPT if kind is None else kind.cannot_look or NOTHING_KEPT
