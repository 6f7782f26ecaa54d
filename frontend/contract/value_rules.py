"""Thresholds and caps as operators set and clear them (docs/contract.md, "Thresholds and caps")."""

from typing import Annotated, Any

from msgspec import Meta

from frontend.contract.forms import JsonBody, Query
from frontend.contract.policy import ActionId

# Notes for readers only: frontend/policy/value_rules.py judges the whole rule, and refuses it as `invalid_input`.
Bound = Annotated[Any, Meta(extra_json_schema={"type": ["number", "null"]})]
Allowed = Annotated[Any, Meta(extra_json_schema={"type": ["array", "null"], "minItems": 1, "maxItems": 32})]


class ThresholdToSet(JsonBody, frozen=True, kw_only=True):
    """A threshold: an action, a pointer of its `policy_input`, and one rule."""

    refused_as = "invalid_input"
    refuses_rounded = True
    action_id: ActionId
    pointer: str
    hold_above: Bound = None
    deny_above: Bound = None
    hold_unless_in: Allowed = None
    deny_unless_in: Allowed = None


class CapToSet(JsonBody, frozen=True, kw_only=True):
    """A cap: an action, a pointer of its `policy_input`, whose sum it is, a window, and one bound or both."""

    refused_as = "invalid_input"
    refuses_rounded = True
    action_id: ActionId
    pointer: str
    per: str
    """principal, owner or all."""
    window_seconds: int
    hold_above: Bound = None
    deny_above: Bound = None


class CapQuery(Query, frozen=True, kw_only=True):
    """Which caps to list."""

    action_id: str | None = None
    """Only those of this action."""
    after: str | None = None
    """`next` of the page before: only actions behind this one."""
    used_after: str | None = None
    """`used_next` of a cap: only its subjects behind this one, by their names."""


class ValueRulesToClear(JsonBody, frozen=True, kw_only=True):
    """An action, and a pointer; without it every pointer."""

    refused_as = "invalid_input"
    action_id: ActionId
    pointer: str | None = None
