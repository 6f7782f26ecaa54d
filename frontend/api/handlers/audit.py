"""GET /v1/audit/…: what happened, whether the record of it is whole, and proofs that need no trust in the gateway."""

import msgspec
from msgspec.structs import replace

from contract.audit import ChainReport
from contract.evidence import Bundle, Consistency, ShownCheckpoint
from frontend.auth.authentication import OperatorCaller, asker_of
from frontend.contract.annotations import codes
from frontend.contract.audit import AuditEvents, ConsistencyQuery, EventsQuery, ProofQuery
from frontend.errors import GateError
from frontend.notary.errors import notary_errors_as
from frontend.notary.sealed import missing, refuse_sealed
from frontend.services import Services
from ipc.evidence.records import EventQuery, KeptFilter
from ipc.operations.evidence import MAX_SHOWN_BYTES, Prove, ProveConsistency, QueryEvents, ReadCheckpoint


@codes("sealed", "ledger_unavailable")
async def events(services: Services, query: EventsQuery, operator: OperatorCaller) -> AuditEvents:
    """List audit events, the newest first.

    The bounds `after` and `before` are exclusive. Where all that is asked for would lie in sealed segments, the answer
    is 404.
    """
    fields = msgspec.structs.asdict(query)
    kept = tuple(KeptFilter(pointer, value) for pointer, value in fields.pop("kept").items())
    with notary_errors_as("ledger_unavailable"):
        records = await _found(services, EventQuery(**fields, kept=kept), asker_of(operator))
    if not records:
        await refuse_sealed(services.notary, query.trace_id, query.before)
    return AuditEvents(events=[msgspec.Raw(event) for event in records], count=len(records))


async def _found(services: Services, query: EventQuery, asker: str) -> list[bytes]:
    """Up to `limit` events, found by bounded reads of the notary: calls go on between two reads."""
    records = list[bytes]()
    while True:
        found = await services.notary.ask(QueryEvents(query, asker, with_kept=True))
        records += found.events
        if found.looked_until is None or sum(map(len, records)) > MAX_SHOWN_BYTES:
            return records
        query = replace(query, before=found.looked_until, limit=query.limit - len(found.events))


@codes("ledger_unavailable")
async def verify(services: Services, operator: OperatorCaller) -> ChainReport:
    """Walk the whole chain of audit events, and the tree of events and intents.

    One walk at a time: a second request waits, ten minutes at most, and gets a walk of its own; operators take turns.
    The log tells how far a long one is.
    """
    with notary_errors_as("ledger_unavailable"):
        report = await services.readers.verify(asker_of(operator))
    services.metrics.verifications.add("intact" if report.intact else "broken")
    return report


@codes("ledger_unavailable")
async def checkpoint(services: Services, _operator: OperatorCaller) -> ShownCheckpoint:
    """Show a signed checkpoint of everything that is durable.

    With a copy of it, it can be proven later that nothing before it was changed or removed.
    """
    with notary_errors_as("ledger_unavailable"):
        return await services.notary.ask(ReadCheckpoint())


@codes("evidence_not_found", "sealed", "ledger_unavailable")
async def proof(services: Services, query: ProofQuery, operator: OperatorCaller) -> Bundle:
    """Prove an event, an intent or a receipt.

    The answer is a bundle that can be verified without the gateway.
    """
    named = msgspec.structs.asdict(query)
    if sum(value is not None for value in named.values()) != 1:
        raise GateError("invalid_request", message="name one of event_id, intent_id and receipt_id")
    with notary_errors_as("ledger_unavailable"):
        bundle = await services.notary.ask(Prove(**named, asker=asker_of(operator)))
    if bundle is None:
        identifier = next(value for value in named.values() if value is not None)
        raise await missing(services.notary, "evidence_not_found", identifier)
    return bundle


@codes("evidence_not_found", "ledger_unavailable")
async def consistency(services: Services, query: ConsistencyQuery, operator: OperatorCaller) -> Consistency:
    """Prove that the log continues an earlier checkpoint.

    A log that was never of this size has no such proof: it was cut, or the checkpoint is of another log.
    """
    with notary_errors_as("ledger_unavailable"):
        evidence = await services.notary.ask(ProveConsistency(query.old_size, asker_of(operator)))
    if evidence is None:
        raise GateError("evidence_not_found")
    return evidence
