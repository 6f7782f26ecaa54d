"""GET /v1/calls: an agent's own calls."""

from typing import Any

from contract.calls import RecentCall, RecentCalls
from frontend.auth.authentication import Caller, asker_of
from frontend.contract.annotations import codes
from frontend.contract.calls import CallsQuery
from frontend.notary.errors import notary_errors_as
from frontend.services import Services
from ipc.operations.own_calls import ListOwnCalls, OwnCall


@codes("ledger_unavailable")
async def own(services: Services, query: CallsQuery, caller: Caller) -> RecentCalls:
    """List the caller's own calls: those of its principal that were proven with its key, in whatever session.

    Refused calls are among them, but for those that one event counts: beyond 600 an hour and code, and callers who had
    proven nothing. Told by the ledger of this gateway.
    """
    lease = caller.lease
    asked = ListOwnCalls(lease.principal, lease.jkt, query.limit, query.after, asker_of(caller))
    with notary_errors_as("ledger_unavailable"):
        page = await services.notary.ask(asked)
    return RecentCalls(calls=tuple(map(_shown, page.calls)), next=page.next)


def _shown(call: OwnCall) -> RecentCall:
    known: dict[str, Any] = {
        "action_id": call.action_id, "request_hash": call.request_hash, "error": call.error,
        "receipt_id": call.receipt_id, "approval_id": call.approval_id, "summary": call.summary,
    }  # fmt: skip
    told = {name: value for name, value in known.items() if value is not None}
    return RecentCall(trace_id=call.trace_id, state=call.state, at=call.at, **told)
