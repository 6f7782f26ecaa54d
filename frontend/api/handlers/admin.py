"""Operating the gateway: status, drain, reload, revocation of everything."""

from contract.admin import AdminStatus, CurrentEpoch, Drained, ReloadResult, RevokedAll
from frontend.auth.authentication import OperatorCaller
from frontend.contract.annotations import codes
from frontend.contract.answers import answer_of
from frontend.services import Services


@codes()
async def status(services: Services, _operator: OperatorCaller) -> AdminStatus:
    """Show the facts of the running gateway.

    Not audited.
    """
    return answer_of(AdminStatus, await services.status())


@codes("evidence_persistence_failed")
async def drain(services: Services, operator: OperatorCaller) -> Drained:
    """Refuse new work from now on; irreversible.

    Calls in flight go on, and operators' endpoints stay open. Draining comes before its evidence: a gateway whose
    ledger fails must still be able to refuse work.
    """
    already = services.admission.drain()
    services.announce_drain()
    await services.journal.operator_act("AdminDrain", operator, is_done=True)
    return Drained(
        draining=True, already_draining=already, in_flight_executions=services.admission.in_flight_everywhere
    )


@codes("reload_failed")
async def reload(services: Services, operator: OperatorCaller) -> ReloadResult:
    """Take manifests, policy, operators and principals as they lie on the disk now, all or none.

    When anything is wrong, what was in force stays so; what it was is in the gateway's log and in the event.
    """
    outcome = await services.reloads.request(operator)
    return ReloadResult(
        manifests_loaded=outcome.actions,
        policy_reloaded=True,
        reloaded_at=services.clock.iso(),
        actions=outcome.actions,
        policy_version=outcome.policy_version,
        changed=outcome.changed,
        needs_restart=outcome.needs_restart,
    )


@codes("epoch_store_unavailable", "evidence_persistence_failed")
async def revoke_all(services: Services, operator: OperatorCaller) -> RevokedAll:
    """Raise the epoch: every earlier lease, grant and held plan ends at once. Calls under way end well.

    The epoch rises before its evidence: when the evidence fails, the answer says so and the revocation is in force.
    """
    previous, current = await services.revocation.revoke_all(operator)
    return RevokedAll(previous_epoch=previous, current_epoch=current)


@codes("epoch_store_unavailable")
async def epoch(services: Services, _operator: OperatorCaller) -> CurrentEpoch:
    """Show the revocation epoch in force."""
    return CurrentEpoch(current_epoch=await services.revocation.epoch())
