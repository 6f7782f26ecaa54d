"""/v1/admin/standing: approvals of calls to come, each signed by its operator."""

from contract.standing import StandingApproval, StandingApprovals, StandingRevoked
from frontend.auth.authentication import OperatorCaller
from frontend.calls.approvals.standing import StandingWriter, view_of
from frontend.contract.annotations import codes
from frontend.contract.standing import StandingToAdd
from frontend.notary.errors import notary_errors_as
from frontend.services import Services
from ipc.operations.standing import ListStanding


@codes("approval_store_unavailable")
async def listing(services: Services, _operator: OperatorCaller) -> StandingApprovals:
    """List the standing approvals that are in force, with the calls that have run by each."""
    with notary_errors_as("approval_store_unavailable"):
        found = await services.notary.ask(ListStanding())
    return StandingApprovals(standing=tuple(map(view_of, found)), origin=_writer(services).origin)


@codes(
    "action_not_found", "invalid_input", "invalid_approval_signature", "too_many_standing_approvals",
    "approval_store_unavailable",
)  # fmt: skip
async def add(services: Services, form: StandingToAdd, operator: OperatorCaller) -> StandingApproval:
    """Let calls of one action by one principal run that would wait for a person.

    They run until a time, up to a number, and as long as they keep every condition on their values; denials stay.
    Sent again, the same text is the same standing approval. An action that needs several operators has none.
    """
    return view_of(await _writer(services).add(form.signature, operator))


@codes("standing_not_found", "approval_store_unavailable")
async def revoke(services: Services, operator: OperatorCaller, standing_id: str) -> StandingRevoked:
    """End a standing approval: the next call waits for a person again."""
    ended = await _writer(services).revoke(standing_id, operator)
    row = ended.row
    return StandingRevoked(
        standing_id=row.standing_id, action_id=row.action_id, principal=row.principal, calls=ended.calls
    )  # fmt: skip


def _writer(services: Services) -> StandingWriter:
    current = services.configuration.current
    return StandingWriter(services.clock, services.notary, services.journal, current.registry, current.settings_now())
