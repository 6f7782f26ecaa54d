"""Lists that come in pages, as one; and the order in which people read a list."""

from collections.abc import Iterable

from gateway_client.contract.sessions import Session
from gateway_client.operators import OperatorClient
from gateway_client.results import Approval

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


def by_principal(found: Iterable[Approval]) -> list[Approval]:
    """The same approvals, those of one principal together: each principal stands where its first approval stood."""
    groups: dict[str | None, list[Approval]] = {}
    for one in found:
        groups.setdefault(one.principal, []).append(one)
    return [one for group in groups.values() for one in group]
