"""GET /v1/audit/events and /v1/audit/verify: what happened, and whether the record of it is whole."""

import msgspec

from frontend.auth.authentication import OperatorCaller
from frontend.contract.annotations import codes
from frontend.contract.audit import AuditEvents, ChainReport, EventsQuery
from frontend.errors import GateError
from frontend.evidence.ledger import EventQuery, LedgerUnavailable
from frontend.evidence.progress import Progress
from frontend.services import Services


@codes("ledger_unavailable")
async def events(services: Services, query: EventsQuery, _operator: OperatorCaller) -> AuditEvents:
    """List audit events, the newest first.

    The bounds `after` and `before` are exclusive.
    """
    try:
        found = await services.ledger.query(EventQuery(**msgspec.structs.asdict(query)))
    except LedgerUnavailable as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    return AuditEvents(events=[msgspec.Raw(event) for event in found], count=len(found))


@codes("ledger_unavailable")
async def verify(services: Services, _operator: OperatorCaller) -> ChainReport:
    """Walk the whole chain of audit events.

    One walk at a time: whoever comes second waits, and gets a walk of their own. The log tells how far a long one is.
    """
    try:
        async with services.verifying:
            walk = Progress()
            report = await services.ledger.verify(walk.hear)
            walk.end(report)
    except LedgerUnavailable as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    return ChainReport(**msgspec.structs.asdict(report))
