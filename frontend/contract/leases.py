"""POST /v1/leases (docs/contract.md, "Lease")."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from contract.noun import shown_as
from frontend.contract.forms import text_like

MAX_SCOPES = 32
MAX_CALLS = 2**53 - 1
COORDINATE = "^[A-Za-z0-9_-]{43}$"
Scope = Annotated[str, text_like("(?=.*:)[a-z0-9:_-]{4,64}", "4 to 64 of a-z 0-9 : _ - with a colon, like tools:call")]


class DpopJwk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The public half of the key that signs the caller's proofs: a point on P-256 (RFC 7517)."""

    kty: Annotated[str, Meta(pattern="^EC$")]
    crv: Annotated[str, Meta(pattern="^P-256$")]
    x: Annotated[str, Meta(pattern=COORDINATE)]
    """32 bytes, base64url without padding."""
    y: Annotated[str, Meta(pattern=COORDINATE)]
    """32 bytes, base64url without padding."""
    alg: Literal["ES256"] | UnsetType = UNSET
    use: Literal["sig"] | UnsetType = UNSET
    key_ops: Annotated[list[Literal["verify"]], Meta(min_length=1, max_length=1)] | UnsetType = UNSET
    kid: str | UnsetType = UNSET
    ext: bool | UnsetType = UNSET


class Budgets(msgspec.Struct, frozen=True, kw_only=True):
    """The session's budget. Kinds that the gateway does not know are ignored."""

    max_calls: Annotated[int, Meta(ge=0, le=MAX_CALLS)] | None = None
    """Calls; without it the session has no limit."""


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's request. Members that the gateway does not know are ignored."""

    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=MAX_SCOPES)]
    """The lease gets those that the caller's identity may have."""
    dpop_jwk: Annotated[dict[str, Any], shown_as(DpopJwk)]
    budgets: Budgets | None = None
