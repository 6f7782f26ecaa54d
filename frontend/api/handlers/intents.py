"""/v1/admin/intents: calls that were dispatched and have no receipt."""

import msgspec

from contract.intents import (
    IntentVerifier,
    IntentView,
    ResolvedIntent,
    SeenFile,
    UnresolvedIntents,
    VerifiedIntent,
)
from frontend.auth.authentication import OperatorCaller, asker_of
from frontend.calls.intents import why_not
from frontend.contract.annotations import codes
from frontend.contract.intents import IntentsQuery, ResolveRequest
from frontend.errors import GateError
from frontend.notary.errors import notary_errors_as
from frontend.services import Services
from ipc.evidence.events import INTENT_RESOLVED
from ipc.operations.intents import ListUnresolved, ResolveIntent
from ipc.operations.status import ReadLedger


@codes("ledger_unavailable")
async def listing(services: Services, query: IntentsQuery, operator: OperatorCaller) -> UnresolvedIntents:
    """List intents without a receipt: calls that were dispatched, and whose effect is unknown."""
    with notary_errors_as("ledger_unavailable"):
        intents = await services.notary.ask(ListUnresolved(query.limit, query.after, asker_of(operator)))
        total = (await services.notary.ask(ReadLedger())).unresolved
    return UnresolvedIntents(intents=tuple(intents), count=len(intents), total=total)


@codes("intent_not_found", "sealed", "ledger_unavailable")
async def show(services: Services, operator: OperatorCaller, intent_id: str) -> IntentView:
    """Show all that is known of an intent without a receipt, and whether its verifier can look again."""
    intent = await services.intents.show(intent_id, operator)
    fields = msgspec.to_builtins(intent)
    reason = why_not(intent)
    verifier = {
        "can_look_again": reason is None and not intent.is_under_way, "reason": reason,
        **{name: fields.pop(name) for name in ("verifier_kind", "expected", "last_look")},
    }  # fmt: skip
    return msgspec.convert(fields | {"verifier": msgspec.convert(verifier, IntentVerifier)}, IntentView)


@codes(
    "intent_not_found", "sealed", "intent_under_way", "intent_not_verifiable", "overloaded", "ledger_unavailable",
    "evidence_store_unavailable",
)  # fmt: skip
async def verify(services: Services, operator: OperatorCaller, intent_id: str) -> VerifiedIntent:
    """Have the action's verifier look again at what an intent without a receipt was to leave.

    No plan runs and no intent is resolved: an audit event says what was seen. `fs_hash` can look again; others
    can't without the side effect, and the answer says why (409).
    """
    looked = await services.intents.verify(intent_id, operator)
    seen = msgspec.convert(looked.seen, SeenFile)
    return VerifiedIntent(intent_id=intent_id, trace_id=looked.trace_id, action_id=looked.action_id, seen=seen)


@codes("intent_not_found", "intent_under_way", "evidence_store_unavailable")
async def resolve(
    services: Services, body: ResolveRequest, operator: OperatorCaller, intent_id: str
) -> ResolvedIntent:  # fmt: skip
    """Resolve an intent without a receipt.

    It leaves the list and the gauge. One whose worker may still tell of its end is refused (409). The event also has
    what the verifier saw, where it has looked again.
    """
    event = services.journal.operator_event(INTENT_RESOLVED, operator, reason=body.note)
    with notary_errors_as("evidence_store_unavailable"):
        resolved = await services.notary.ask(ResolveIntent(intent_id, body.outcome, event))
    if resolved is None:
        raise GateError("intent_not_found")
    if resolved.is_under_way:
        raise GateError("intent_under_way")
    return ResolvedIntent(
        intent_id=intent_id, trace_id=resolved.trace_id, action_id=resolved.action_id, outcome=body.outcome,
        resolved_by=operator.name,
    )  # fmt: skip
