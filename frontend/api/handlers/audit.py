"""GET /v1/audit/events and /v1/audit/verify: what happened, and whether the record of it is whole."""

import msgspec

from frontend.auth.authentication import OperatorCaller
from frontend.contract.annotations import codes
from frontend.contract.audit import AuditEvents, ChainReport, EventsQuery
from frontend.errors import GateError
from frontend.notary.client import NotaryRefused, NotaryUnavailable
from frontend.services import Services
from ipc.evidence import EventQuery


@codes("ledger_unavailable")
async def events(services: Services, query: EventsQuery, _operator: OperatorCaller) -> AuditEvents:
    """List audit events, the newest first.

    The bounds `after` and `before` are exclusive.
    """
    try:
        found = await services.notary.events(EventQuery(**msgspec.structs.asdict(query)))
    except (NotaryUnavailable, NotaryRefused) as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    return AuditEvents(events=[msgspec.Raw(event) for event in found], count=len(found))


@codes("ledger_unavailable")
async def verify(services: Services, _operator: OperatorCaller) -> ChainReport:
    """Walk the whole chain of audit events.

    One walk at a time: whoever comes second waits, ten minutes at most, and gets a walk of their own. The log tells how
    far a long one is.
    """
    try:
        report = await services.readers.verify()
    except NotaryUnavailable as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    services.metrics.verifications.add("intact" if report.intact else "broken")
    return ChainReport(**msgspec.structs.asdict(report))
