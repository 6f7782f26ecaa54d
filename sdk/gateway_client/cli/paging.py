"""Lists that come in pages, as one."""

from gateway_client.operators import OperatorClient
from gateway_client.session_results import Session

_PAGE = 200


def every_session(operator: OperatorClient, principal: str | None = None, limit: int = 10_000) -> list[Session]:
    """Sessions, the newest first, at most so many."""
    sessions: list[Session] = []
    after = None
    while len(sessions) < limit:
        page = operator.sessions(principal, min(_PAGE, limit - len(sessions)), after)
        sessions += page.sessions
        after = page.next
        if after is None:
            break
    return sessions
