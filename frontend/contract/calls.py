"""Which of its calls an agent lists."""

from typing import Annotated

from msgspec import Meta

from frontend.contract.forms import Query, text_like

DEFAULT_CALLS, MAX_CALLS = 20, 100


class CallsQuery(Query, frozen=True, kw_only=True):
    """Which calls to list."""

    limit: Annotated[int, Meta(ge=1, le=MAX_CALLS)] = DEFAULT_CALLS
    """How many at most, the newest first."""
    after: Annotated[str, text_like(r"trc_[0-9A-Za-z-]{1,64}", "a trace id")] | None = None
    """`next` of the page before, or the trace id of any call: only those before it."""
