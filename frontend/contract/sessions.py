"""Sessions of agents, as operators see and revoke them."""

from typing import Annotated

from msgspec import Meta

from frontend.contract.forms import Query, text_like

DEFAULT_SESSIONS, MAX_SESSIONS = 50, 200


class SessionsQuery(Query, frozen=True, kw_only=True):
    """Which sessions to list."""

    principal: str | None = None
    """Only those of this principal."""
    limit: Annotated[int, Meta(ge=1, le=MAX_SESSIONS)] = DEFAULT_SESSIONS
    """How many at most, the newest first."""
    after: Annotated[str, text_like(r"[0-9]{1,18}\.[0-9]{1,18}", "`next` of the page before")] | None = None
    """`next` of the page before."""
