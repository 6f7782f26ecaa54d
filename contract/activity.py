"""Calls counted by time, as operators see them."""

from typing import Literal

from .noun import Noun


class DecisionCounts(Noun, frozen=True, kw_only=True):
    """Calls by decision. A held call counts twice once it is decided: as held, and as allowed, denied or failed."""

    allow: int = 0
    deny: int = 0
    pending_approval: int = 0
    error: int = 0


class ActivityBucket(Noun, frozen=True, kw_only=True):
    """The calls of one hour or day."""

    start: str
    counts: DecisionCounts


class CountedAction(Noun, frozen=True, kw_only=True):
    """An action and its calls."""

    action_id: str | None
    """Null for all actions that are not listed by name."""
    count: int


class CountedPrincipal(Noun, frozen=True, kw_only=True):
    """A principal and its calls."""

    principal: str | None
    """Null for all principals that are not listed by name."""
    count: int


class ValueSum(Noun, frozen=True, kw_only=True):
    """The exact sum of a kept value over the executed calls of an action."""

    action_id: str
    pointer: str
    sum: str
    """A decimal number, exact."""


class AuditSummary(Noun, frozen=True, kw_only=True):
    """Calls of a span of time: counts by step, the busiest actions and principals, and sums of kept values."""

    step: Literal["hour", "day"]
    buckets: tuple[ActivityBucket, ...]
    """Every hour or day of the span, the oldest first. Hours and days are those of UTC."""
    actions: tuple[CountedAction, ...]
    """The busiest first; at most 100."""
    principals: tuple[CountedPrincipal, ...]
    """The busiest first; at most 100."""
    sums: tuple[ValueSum, ...]
    """At most 1000, by action and pointer."""
    complete: bool
    """False while events of an earlier version are still being counted."""
