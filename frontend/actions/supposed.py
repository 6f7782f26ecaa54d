"""A call that was never made: the lease it is assumed to have where policy is asked for an explanation.

The configuration decides as much of it as it can; each assumption is a sentence for readers of the explanation.
"""

from typing import Final

from frontend.auth.lease import Lease
from ipc.configuration.identity_origin import UNKNOWN
from ipc.settings import PrincipalMapping, Settings

_SCOPES: Final = ("tools:call",)


def mapping_of(settings: Settings, principal: str, assumed: list[str]) -> PrincipalMapping:
    """The mapping of a principal in the configuration; without one, the defaults of a lease."""
    mapping = next((one for one in settings.identity.principals.values() if one.principal == principal), None)
    if mapping is not None:
        assumed.append(f"The lease has every scope that it may have: {', '.join(mapping.scopes)}.")
        return mapping
    assumed.append(f"No identity mapping names this principal: no owner, and the scope {', '.join(_SCOPES)}.")
    return PrincipalMapping(principal=principal, scopes=_SCOPES)


def lease_of(mapping: PrincipalMapping, calls_remaining: int | None) -> Lease:
    """A lease of this principal, of no session."""
    return Lease(
        session_id="", principal=mapping.principal, owner=mapping.owner, scopes=mapping.scopes, jti="", jkt="", epoch=0,
        exp=0, has_budget=calls_remaining is not None, origin=UNKNOWN,
    )  # fmt: skip
