"""Operating the gateway: status, drain, reload, revocation of everything, unresolved intents."""

import msgspec

from frontend.authentication import OperatorCaller
from frontend.contract.admin import (
    AdminStatus,
    CurrentEpoch,
    Drained,
    IntentsQuery,
    ReloadResult,
    RevokedAll,
    UnresolvedIntent,
    UnresolvedIntents,
)
from frontend.contract.marks import codes
from frontend.errors import GateError
from frontend.evidence.ledger import LedgerUnavailable
from frontend.house import House


@codes()
async def status(house: House, _operator: OperatorCaller) -> AdminStatus:
    """Show the facts of the running gateway.

    Not audited.
    """
    return msgspec.convert(await house.status(), AdminStatus)


@codes("evidence_persistence_failed")
async def drain(house: House, operator: OperatorCaller) -> Drained:
    """Refuse new work from now on; irreversible.

    What is in flight ends well, and operators' endpoints stay open. Draining comes before its evidence: a gateway whose
    ledger fails must still be able to refuse work.
    """
    already = house.admission.drain()
    house.announce_drain()
    await house.journal.operator_act("AdminDrain", operator)
    return Drained(draining=True, already_draining=already, in_flight_executions=house.admission.in_flight)


@codes("reload_failed")
async def reload(house: House, operator: OperatorCaller) -> ReloadResult:
    """Take manifests and policy as they lie on the disk now, both or neither.

    When anything is wrong, what was in force stays so; what it was is in the gateway's log and in the event.
    """
    outcome = await house.reloads.request(operator)
    return ReloadResult(
        manifests_loaded=outcome.actions,
        reloaded_at=house.clock.iso(),
        actions=outcome.actions,
        policy_version=outcome.policy_version,
    )


@codes("epoch_store_unavailable", "evidence_persistence_failed")
async def revoke_all(house: House, operator: OperatorCaller) -> RevokedAll:
    """Raise the epoch: every lease, grant and held plan of before is dead at once. Calls under way end well.

    The epoch rises before its evidence: when the evidence fails, the answer says so and the revocation is in force.
    """
    previous, current = await house.revocation.revoke_all(operator)
    return RevokedAll(previous_epoch=previous, current_epoch=current)


@codes("epoch_store_unavailable")
async def epoch(house: House, _operator: OperatorCaller) -> CurrentEpoch:
    """Show the revocation epoch in force."""
    return CurrentEpoch(current_epoch=await house.epochs.current())


@codes("ledger_unavailable")
async def intents(house: House, query: IntentsQuery, _operator: OperatorCaller) -> UnresolvedIntents:
    """List intents without a receipt: what was dispatched, and nobody knows what came of it."""
    try:
        found = await house.ledger.unresolved(query.limit)
    except LedgerUnavailable as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    shown = [UnresolvedIntent(**msgspec.structs.asdict(intent)) for intent in found]
    return UnresolvedIntents(intents=shown, count=len(shown))
