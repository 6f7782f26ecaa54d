"""Webhooks as operators see, try and repeat them."""

from typing import Annotated

from msgspec import Meta

from frontend.contract.forms import JsonBody, Query, StoredText

DEFAULT_GIVEN_UP, MAX_GIVEN_UP = 50, 500


class WebhooksQuery(Query, frozen=True, kw_only=True):
    """Which dead letters to list."""

    endpoint: StoredText | None = None
    """Dead letters of this endpoint alone."""
    limit: Annotated[int, Meta(ge=0, le=MAX_GIVEN_UP)] = DEFAULT_GIVEN_UP
    """How many dead letters at most, the newest first."""


class RedeliverRequest(JsonBody, frozen=True, kw_only=True):
    """Which dead letters to send again."""

    event_id: StoredText | None = None
    """That of this event alone; absent: the oldest hundred."""
    status: Annotated[list[Annotated[int, Meta(ge=300, le=599)]], Meta(min_length=1, max_length=16)] | None = None
    """Only those that the receiver refused with one of these HTTP statuses."""
