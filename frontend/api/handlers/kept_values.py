"""POST /v1/admin/evidence/erase: kept values go, their commitments stay."""

from contract.erasing import ErasedValues
from frontend.auth.authentication import OperatorCaller
from frontend.clock import parse_iso
from frontend.contract.annotations import codes
from frontend.contract.erasing import EraseForm
from frontend.errors import GateError
from frontend.notary.errors import notary_errors_as
from frontend.notary.sealed import missing, segments_before
from frontend.services import Services
from ipc.evidence.events import EVIDENCE_ERASED
from ipc.operations.erasing import EraseKept
from ipc.texts.foreign_texts import clean_reason

AT_ONCE = 32
"""Operations of one request, each with an event of its own."""


@codes("evidence_not_found", "sealed", "ledger_unavailable", "evidence_store_unavailable")
async def erase(services: Services, body: EraseForm, operator: OperatorCaller) -> ErasedValues:
    """Erase kept values of one call, or of all calls of a principal.

    Events list the commitments whose values are gone; chain, tree and bundles go on to verify. Stored requests of the
    same calls are erased with them.
    """
    if not clean_reason(body.reason).strip():
        raise GateError("invalid_request", message="reason: has no character that shows")
    before = _before(body)
    erased = waiting = 0
    following: int | None = body.after
    for _ in range(AT_ONCE):
        if following is None:
            break
        event = services.journal.operator_event(EVIDENCE_ERASED, operator, reason=body.reason)
        with notary_errors_as("evidence_store_unavailable"):
            told = await services.notary.ask(EraseKept(event, body.event_id, body.principal, before, following))
        if told is None:
            raise await missing(services.notary, "evidence_not_found", body.event_id or "")
        erased, waiting, following = erased + told.values, waiting + told.waiting, told.next
    sealed = () if body.principal is None else await segments_before(services.notary, before)
    return ErasedValues(erased=erased, waiting=waiting, sealed=sealed, next=following)


def _before(body: EraseForm) -> float | None:
    """Raises GateError invalid_request for a body that does not name one kind of calls."""
    if (body.event_id is None) == (body.principal is None):
        raise GateError("invalid_request", message="name one of event_id and principal")
    if body.before is None:
        return None
    if body.principal is None:
        raise GateError("invalid_request", message="before goes with a principal")
    try:
        return parse_iso(body.before)
    except ValueError:
        raise GateError("invalid_request", message="before is not an ISO 8601 time") from None
