"""The access lists as operators change them (docs/contract.md, "Policy ACL")."""

from typing import Annotated

from msgspec import Meta

from frontend.contract.forms import CallBody, JsonBody
from frontend.contract.leases import MAX_CALLS

MAX_ACTIONS = 256
"""Action ids in one change."""

# Notes for readers only: what does not fit is `invalid_input`, which frontend/api/handlers/policies.py answers.
ActionId = Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,255}$"})]
AgentId = Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}$"})]
PrincipalId = Annotated[str, Meta(extra_json_schema={"pattern": "^(\\*|[A-Za-z0-9][A-Za-z0-9._:@-]{0,255})$"})]
ActionIds = Annotated[list[ActionId], Meta(extra_json_schema={"minItems": 1, "maxItems": MAX_ACTIONS})]


class CallToExplain(JsonBody, frozen=True, kw_only=True):
    """A call that is not made."""

    principal: AgentId
    action_id: ActionId
    request: CallBody | None = None
    """The request; without it an empty object."""
    calls_remaining: Annotated[int, Meta(ge=0, le=MAX_CALLS)] | None = None
    """Calls that its session would have left; without it calls are not counted."""


class PrincipalActions(JsonBody, frozen=True, kw_only=True):
    """Actions of a principal."""

    principal: PrincipalId
    actions: ActionIds


class AllowlistPair(JsonBody, frozen=True, kw_only=True):
    """An action, and an agent that needs no approval for it."""

    refused_as = "invalid_input"  # docs/contract.md, "Admin socket"
    action_id: ActionId
    agent_id: AgentId
