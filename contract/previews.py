"""Previews: what would come of a call that is not made (docs/manifests.md, "Try before it counts")."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from .approvals import CapOfCall
from .noun import LEFT_OUT, NEVER_NULL, NeverNull, Noun, shown_as


class RequestPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The HTTP request that the call would send. A secret stands as `<secret NAME>`."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: str | None


class CallPreview(Noun, frozen=True, kw_only=True):
    """The decision about a call that is not made, and its effect."""

    principal: str
    action_id: str
    trace_id: str
    """The trace of the preview itself, which its audit event has."""
    decision: Literal["allow", "deny", "hold"]
    rule: str | None
    """Which rule of the policy decides; null where the call is denied before policy is asked."""
    deny_reason: NeverNull[str] = LEFT_OUT
    """Present where the call would be denied."""
    shown: Mapping[str, Any] | None
    """The members of an approval's detail that need no hold: what an operator would see if the call was held.
    Null where it is denied before there is a plan."""
    sends: Annotated[Mapping[str, Any], shown_as(RequestPreview)] | None
    """Null for an action that sends no HTTP request by template, and where there is no plan."""
    standing_id: NeverNull[str] = LEFT_OUT
    """The standing approval by which the call would run; absent where none lifts a hold."""
    caps: Annotated[tuple[Mapping[str, Any], ...], NEVER_NULL, shown_as(CapOfCall)] = LEFT_OUT
    """The caps of its action as they would stand with the call, for operators. Absent without one, and where the call
    is denied before they are read."""
