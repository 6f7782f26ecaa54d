"""The kept values that an operator has erased."""

from typing import Annotated

from msgspec import Meta

from frontend.contract.forms import JsonBody, StoredText

MAX_REASON = 500
_MAX_SEQ = 2**53 - 1


class EraseForm(JsonBody, frozen=True, kw_only=True):
    """The calls whose kept values are erased: one by any of its events, or those of a principal."""

    event_id: StoredText | None = None
    """Any event of the one call."""
    principal: StoredText | None = None
    """All calls of this principal."""
    before: str | None = None
    """Only calls before this time (ISO 8601); with a principal."""
    reason: Annotated[str, Meta(min_length=1, max_length=MAX_REASON)]
    """Goes into the audit event."""
    after: Annotated[int, Meta(ge=0, le=_MAX_SEQ)] = 0
    """`next` of the answer before."""
