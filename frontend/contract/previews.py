"""The operator's form of a preview (docs/contract.md, "Previews")."""

from typing import Annotated

from msgspec import Meta

from frontend.contract.forms import CallBody, JsonBody
from frontend.contract.leases import MAX_SCOPES, Scope
from frontend.contract.policy import AgentId


class CallToPreview(JsonBody, frozen=True, kw_only=True):
    """A call that is not made."""

    principal: AgentId
    request: CallBody | None = None
    """The request; without it an empty object."""
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=MAX_SCOPES)] | None = None
    """The scopes of its lease; without them those that the configuration gives the principal."""
