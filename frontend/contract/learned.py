"""Learned domains and paths (docs/contract.md, "Learned domain" and "Learned path")."""

from typing import Annotated, Literal

import msgspec

from frontend.contract.forms import Body, Query, text_like

Source = Literal["approval", "cli"]
_ActionId = Annotated[str, text_like("[A-Za-z0-9][A-Za-z0-9._-]{0,255}", "an action id")]


class LearnedDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A domain beyond those of the action's manifest."""

    domain: str
    """A name, or `*.` and a name: every name below it."""
    action_id: str
    source: Source
    """`approval`: learned with an approved call; `cli`: added by itself."""
    added_at: str
    """UTC, milliseconds, `Z`."""
    added_by: str
    """The operator."""


class LearnedDomains(msgspec.Struct, frozen=True):
    """All of them, or those of one action."""

    domains: list[LearnedDomain]


class LearnedPath(msgspec.Struct, frozen=True, kw_only=True):
    """A path pattern beyond those of the action's manifest."""

    path: str
    """Relative to the action's root; `*`, `?` and `**` as in a manifest."""
    path_glob: str
    """The same under its other name."""
    action_id: str
    source: Source
    added_at: str
    """UTC, milliseconds, `Z`."""
    added_by: str
    """The operator."""


class LearnedPaths(msgspec.Struct, frozen=True):
    """All of them, or those of one action."""

    paths: list[LearnedPath]


class OfAction(Query, frozen=True, kw_only=True):
    """Of one action, or of all."""

    action: _ActionId | None = None
    """Of this action; of all when omitted."""


class DomainForm(Body, frozen=True, kw_only=True):
    """A domain of an action."""

    action_id: str
    domain: str
    """A name with a dot, no address, no localhost; `*.` only before at least two labels."""


class PathForm(Body, frozen=True, kw_only=True):
    """A path pattern of an action, under one of its two names."""

    action_id: str
    path: str | None = None
    """Relative to the action's root, or absolute below it; `*`, `?` and `**` as in a manifest, and not alone."""
    path_glob: str | None = None


class DomainOfAction(msgspec.Struct, frozen=True):
    """What was added, in the form in which it is compared."""

    domain: str
    action_id: str


class PathOfAction(msgspec.Struct, frozen=True):
    """What was added."""

    path: str
    """As it was given."""
    path_glob: str
    """Relative to the action's root, as it is compared."""
    action_id: str


class Removed(msgspec.Struct, frozen=True):
    """It is gone for the next call."""

    removed: Literal[True] = True


class Cleared(msgspec.Struct, frozen=True):
    """They are gone for the next call."""

    count: int
    """How many there were."""
    cleared: Literal[True] = True
