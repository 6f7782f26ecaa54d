"""Operating the gateway: status, drain, reload, revocation of everything, unresolved intents."""

import msgspec

from frontend.auth.authentication import OperatorCaller
from frontend.contract.admin import (
    AdminStatus,
    CurrentEpoch,
    Drained,
    IntentsQuery,
    ReloadResult,
    ResolvedIntent,
    ResolveRequest,
    RevokedAll,
    UnresolvedIntent,
    UnresolvedIntents,
)
from frontend.contract.annotations import codes
from frontend.errors import GateError
from frontend.notary.client import NotaryRefused, NotaryUnavailable
from frontend.services import Services
from ipc.events import INTENT_RESOLVED
from ipc.messages import ResolveIntent


@codes()
async def status(services: Services, _operator: OperatorCaller) -> AdminStatus:
    """Show the facts of the running gateway.

    Not audited.
    """
    return msgspec.convert(await services.status(), AdminStatus)


@codes("evidence_persistence_failed")
async def drain(services: Services, operator: OperatorCaller) -> Drained:
    """Refuse new work from now on; irreversible.

    What is in flight ends well, and operators' endpoints stay open. Draining comes before its evidence: a gateway whose
    ledger fails must still be able to refuse work.
    """
    already = services.admission.drain()
    services.announce_drain()
    await services.journal.operator_act("AdminDrain", operator)
    return Drained(
        draining=True, already_draining=already, in_flight_executions=services.admission.in_flight_everywhere
    )


@codes("reload_failed")
async def reload(services: Services, operator: OperatorCaller) -> ReloadResult:
    """Take manifests and policy as they lie on the disk now, both or neither.

    When anything is wrong, what was in force stays so; what it was is in the gateway's log and in the event.
    """
    outcome = await services.reloads.request(operator)
    return ReloadResult(
        manifests_loaded=outcome.actions,
        reloaded_at=services.clock.iso(),
        actions=outcome.actions,
        policy_version=outcome.policy_version,
    )


@codes("epoch_store_unavailable", "evidence_persistence_failed")
async def revoke_all(services: Services, operator: OperatorCaller) -> RevokedAll:
    """Raise the epoch: every lease, grant and held plan of before is dead at once. Calls under way end well.

    The epoch rises before its evidence: when the evidence fails, the answer says so and the revocation is in force.
    """
    previous, current = await services.revocation.revoke_all(operator)
    return RevokedAll(previous_epoch=previous, current_epoch=current)


@codes("epoch_store_unavailable")
async def epoch(services: Services, _operator: OperatorCaller) -> CurrentEpoch:
    """Show the revocation epoch in force."""
    return CurrentEpoch(current_epoch=await services.revocation.epoch())


@codes("ledger_unavailable")
async def intents(services: Services, query: IntentsQuery, _operator: OperatorCaller) -> UnresolvedIntents:
    """List intents without a receipt: what was dispatched, and nobody knows what came of it."""
    try:
        found = await services.notary.unresolved(query.limit, query.after)
        total = (await services.notary.ledger_status()).unresolved
    except (NotaryUnavailable, NotaryRefused) as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    shown = [UnresolvedIntent(**msgspec.structs.asdict(intent)) for intent in found]
    return UnresolvedIntents(intents=shown, count=len(shown), total=total)


@codes("intent_not_found", "intent_under_way", "evidence_persistence_failed")
async def resolve_intent(
    services: Services, body: ResolveRequest, operator: OperatorCaller, intent_id: str
) -> ResolvedIntent:
    """Say what came of an intent without a receipt.

    It leaves the list and the gauge. One whose worker may still tell of its end is refused (409).
    """
    event = services.journal.operator_event(INTENT_RESOLVED, operator, reason=body.note)
    try:
        resolved = await services.notary.resolve_intent(ResolveIntent(intent_id, body.outcome, event))
    except (NotaryUnavailable, NotaryRefused) as error:
        raise GateError("evidence_persistence_failed", cause=str(error)) from None
    if resolved is None:
        raise GateError("intent_not_found")
    if resolved.is_under_way:
        raise GateError("intent_under_way")
    return ResolvedIntent(
        intent_id=intent_id, trace_id=resolved.trace_id, action_id=resolved.action_id, outcome=body.outcome,
        resolved_by=operator.name,
    )  # fmt: skip
