"""Learned domains and paths (docs/contract.md, "Learned domain" and "Learned path")."""

from typing import Literal

from .noun import NeverNull, Noun

Source = Literal["approval", "cli"]


class LearnedDomain(Noun, frozen=True, kw_only=True):
    """A domain beyond those of the action's manifest."""

    domain: str
    """A name, or `*.` and a name: every name below it."""
    action_id: str
    source: NeverNull[Source]
    """`approval`: learned with an approved call; `cli`: added by itself."""
    added_at: NeverNull[str]
    """UTC, milliseconds, `Z`."""
    added_by: NeverNull[str]
    """The operator."""


class LearnedDomains(Noun, frozen=True, kw_only=True):
    """All of them, or those of one action."""

    domains: tuple[LearnedDomain, ...]


class LearnedPath(Noun, frozen=True, kw_only=True):
    """A path pattern beyond those of the action's manifest."""

    path: str
    """Relative to the action's root; `*`, `?` and `**` as in a manifest."""
    path_glob: NeverNull[str]
    """The same under its other name."""
    action_id: str
    source: NeverNull[Source]
    added_at: NeverNull[str]
    """UTC, milliseconds, `Z`."""
    added_by: NeverNull[str]
    """The operator."""


class LearnedPaths(Noun, frozen=True, kw_only=True):
    """All of them, or those of one action."""

    paths: tuple[LearnedPath, ...]


class DomainOfAction(Noun, frozen=True, kw_only=True):
    """The added domain, in the form in which it is compared."""

    domain: str
    action_id: str


class PathOfAction(Noun, frozen=True, kw_only=True):
    """The added path."""

    path: str
    """As it was given."""
    path_glob: str
    """Relative to the action's root, as it is compared."""
    action_id: str


class Removed(Noun, frozen=True, kw_only=True):
    """It is gone for the next call."""

    removed: Literal[True]


class Cleared(Noun, frozen=True, kw_only=True):
    """They are gone for the next call."""

    count: NeverNull[int]
    """How many there were."""
    cleared: Literal[True]
