"""Thresholds and caps as operators see them (docs/contract.md, "Thresholds and caps")."""

from typing import Any

from .noun import LEFT_OUT, Listed, NeverNull, Noun


class ThresholdView(Noun, frozen=True, kw_only=True):
    """One value of an action's requests, and the one rule that it must keep."""

    action_id: str
    pointer: str
    hold_above: NeverNull[float] = LEFT_OUT
    deny_above: NeverNull[float] = LEFT_OUT
    hold_unless_in: NeverNull[tuple[Any, ...]] = LEFT_OUT
    deny_unless_in: NeverNull[tuple[Any, ...]] = LEFT_OUT
    """Texts, numbers and truth values."""


class ThresholdList(Noun, frozen=True, kw_only=True):
    """The thresholds of every action."""

    thresholds: tuple[ThresholdView, ...]
    policy_version: str


class SubjectUse(Noun, frozen=True, kw_only=True):
    """The amounts that count for one subject of a cap now, as plain decimals, exact to nine places."""

    subject: str | None
    """The principal or owner. Null for all together, and for calls without an owner."""
    total: str
    unknown: str
    """The part of calls whose outcome is unknown."""


class CapView(Noun, frozen=True, kw_only=True):
    """The sum that one value of an action's requests may reach within a window, for each subject."""

    action_id: str
    pointer: str
    per: str
    """principal, owner or all."""
    window_seconds: int
    hold_above: NeverNull[float] = LEFT_OUT
    deny_above: NeverNull[float] = LEFT_OUT
    used: Listed[SubjectUse]
    """By the names of the subjects, at most 100; a subject without an amount is left out."""
    used_next: NeverNull[str] = LEFT_OUT
    """Where the next page of its subjects begins (`used_after`); absent at the end."""


class CapList(Noun, frozen=True, kw_only=True):
    """Caps by the ids of their actions."""

    caps: tuple[CapView, ...]
    policy_version: str
    next: str | None
    """Where the next page begins (`after`); null at the end. A page has all caps of each of its actions."""


class ValueRuleChanged(Noun, frozen=True, kw_only=True):
    """In force for the next call."""

    action_id: str
    pointer: str | None
    """Null: every pointer of the action."""
    policy_version: str
