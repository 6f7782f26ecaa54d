"""GET /v1/audit/summary: calls by decision over time, the busiest actions and principals, sums of kept values."""

from math import ceil

from contract.activity import AuditSummary
from frontend.auth.authentication import OperatorCaller, asker_of
from frontend.contract.activity import DEFAULT_BUCKETS, HOURS, MAX_BUCKETS, SummaryQuery
from frontend.contract.annotations import codes
from frontend.errors import GateError
from frontend.notary.errors import notary_errors_as
from frontend.services import Services
from ipc.operations.activity import SummariseAudit


@codes("ledger_unavailable")
async def summary(services: Services, query: SummaryQuery, operator: OperatorCaller) -> AuditSummary:
    """Count calls of a span of time: by hour or day and decision, by action, and by principal.

    The counts are kept for 400 days. They are no evidence: the events are.
    """
    first, end = _span(query, services.clock.now())
    with notary_errors_as("ledger_unavailable"):
        return await services.notary.ask(SummariseAudit(first, end, HOURS[query.step], asker_of(operator)))


def _span(query: SummaryQuery, moment: float) -> tuple[int, int]:
    """The first hour, and the one after the last. Raises GateError invalid_request."""
    hours = HOURS[query.step]
    seconds = hours * 3600
    end = ceil((moment if query.before is None else query.before) / seconds)
    first = end - DEFAULT_BUCKETS[query.step] if query.after is None else int(query.after // seconds)
    if first >= end:
        raise GateError("invalid_request", message="after: must be earlier than before")
    if end - first > MAX_BUCKETS[query.step]:
        raise GateError(
            "invalid_request", message=f"after: at most {MAX_BUCKETS[query.step]} {query.step}s before `before`"
        )
    return first * hours, end * hours
