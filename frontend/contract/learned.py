"""Learned domains and paths (docs/contract.md, "Learned domain" and "Learned path")."""

from typing import Annotated

from frontend.contract.forms import JsonBody, Query, text_like

_ActionId = Annotated[str, text_like("[A-Za-z0-9][A-Za-z0-9._-]{0,255}", "an action id")]


class OfAction(Query, frozen=True, kw_only=True):
    """Rules of one action, or of all."""

    action: _ActionId | None = None
    """Only rules of this action; all when omitted."""


class DomainForm(JsonBody, frozen=True, kw_only=True):
    """A domain of an action."""

    action_id: str
    domain: str
    """A name with a dot, no address, no localhost; `*.` only before at least two labels."""


class PathForm(JsonBody, frozen=True, kw_only=True):
    """A path pattern of an action, under one of its two names."""

    action_id: str
    path: str | None = None
    """Relative to the action's root, or absolute below it; `*`, `?` and `**` as in a manifest, and not alone."""
    path_glob: str | None = None
