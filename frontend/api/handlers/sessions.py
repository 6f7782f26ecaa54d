"""/v1/admin/sessions: which agents have a lease now, and ending one before its time."""

import msgspec

from contract.sessions import RevokedSession, Session, Sessions
from frontend.auth.authentication import OperatorCaller, asker_of
from frontend.contract.annotations import codes
from frontend.contract.sessions import SessionsQuery
from frontend.notary.errors import notary_errors_as
from frontend.services import Services
from ipc.operations.leases import ListSessions


@codes("ledger_unavailable")
async def listing(services: Services, query: SessionsQuery, operator: OperatorCaller) -> Sessions:
    """List sessions whose leases are in force: whose they are, until when, and what they have left.

    Told by the events of their leases: where gateways share a store and each has a ledger of its own, those of this
    gateway.
    """
    with notary_errors_as("ledger_unavailable"):
        asked = ListSessions(query.limit, query.principal, query.after, asker_of(operator))
        page = await services.notary.ask(asked)
    shown = tuple(Session(**msgspec.structs.asdict(session)) for session in page.sessions)
    return Sessions(sessions=shown, count=len(shown), next=page.next)


@codes("session_not_found", "too_many_revoked_sessions", "evidence_store_unavailable")
async def revoke(services: Services, operator: OperatorCaller, session_id: str) -> RevokedSession:
    """End one session before its time: its lease is refused at once, and its calls that wait for a person expire.

    Calls that a worker has by then end well. Asked again it changes nothing and says so. Only so many sessions can be
    revoked at the same time (409 `too_many_revoked_sessions`): then revoke everything.
    """
    revoked = await services.revocation.revoke_session(session_id, operator)
    return RevokedSession(
        session_id=session_id, principal=revoked.principal, expires_at=revoked.expires_at,
        already_revoked=revoked.was_revoked,
    )  # fmt: skip
