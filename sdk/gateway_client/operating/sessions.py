"""The operator's calls about sessions of agents. No I/O."""

from gateway_client.contract.sessions import RevokedSession
from gateway_client.operating.calls import OperatorCalls
from gateway_client.results import SessionPage
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import path_of, query_of
from gateway_client.wire.flows import Flow


class SessionsCore(OperatorCalls):
    """Every method gives a flow of one call and its typed result."""

    def sessions(
        self, principal: str | None = None, limit: int | None = None, after: str | None = None
    ) -> Flow[SessionPage]:
        """Sessions whose leases are in force, the newest first; `limit` up to 200, `after`: `next` of the page
        before."""
        query = query_of(principal=principal, limit=limit, after=after)
        answer = yield from self.read(path_of("v1", "admin", "sessions"), query)
        return decode(SessionPage, answer.json(), "sessions")

    def revoke_session(self, session_id: str) -> Flow[RevokedSession]:
        """End one session: its lease is refused at once, its held calls expire. Raises NotFound, Conflict
        too_many_revoked_sessions."""
        answer = yield from self.change("POST", path_of("v1", "admin", "sessions", session_id, "revoke"))
        return decode(RevokedSession, answer.json(), "revoked session")
