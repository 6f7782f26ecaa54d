"""Intents without a receipt, as operators see and resolve them."""

from typing import Annotated

from msgspec import Meta

from contract.intents import Outcome
from frontend.contract.forms import JsonBody, Query, StoredText

DEFAULT_INTENTS, MAX_INTENTS = 100, 1000
MAX_NOTE = 500


class IntentsQuery(Query, frozen=True, kw_only=True):
    """Which intents to list."""

    limit: Annotated[int, Meta(ge=1, le=MAX_INTENTS)] = DEFAULT_INTENTS
    """How many at most, the newest first."""
    after: StoredText | None = None
    """Only those that were dispatched before this intent, by its id: the last one of the page before."""


class ResolveRequest(JsonBody, frozen=True, kw_only=True):
    """The outcome of a call, as the operator found it out."""

    outcome: Outcome
    note: Annotated[str, Meta(max_length=MAX_NOTE)] | None = None
    """How it was found out; goes into the audit event."""
