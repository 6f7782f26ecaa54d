"""A standing approval as an operator adds it (docs/contract.md, "Standing approvals")."""

from typing import Annotated

from msgspec import Meta

from frontend.contract.forms import JsonBody
from ipc.keys.signed_approvals import MAX_CHARACTERS


class StandingToAdd(JsonBody, frozen=True, kw_only=True):
    """All that it allows stands in the text that the operator has signed."""

    refused_as = "invalid_input"
    signature: Annotated[str, Meta(min_length=1, max_length=MAX_CHARACTERS)]
    """A compact JWS with the `typ` `standing+jws` (docs/evidence.md)."""
