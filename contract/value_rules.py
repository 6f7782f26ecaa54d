"""Thresholds and caps as operators see them (docs/contract.md, "Thresholds and caps")."""

from typing import Any

from .noun import LEFT_OUT, NeverNull, Noun


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


class CapView(Noun, frozen=True, kw_only=True):
    """The sum that one value of an action's requests may reach within a window, for each subject."""

    action_id: str
    pointer: str
    per: str
    """principal, owner or all."""
    window_seconds: int
    hold_above: NeverNull[float] = LEFT_OUT
    deny_above: NeverNull[float] = LEFT_OUT


class CapList(Noun, frozen=True, kw_only=True):
    """The caps of every action."""

    caps: tuple[CapView, ...]
    policy_version: str


class ValueRuleChanged(Noun, frozen=True, kw_only=True):
    """In force for the next call."""

    action_id: str
    pointer: str | None
    """Null: every pointer of the action."""
    policy_version: str
