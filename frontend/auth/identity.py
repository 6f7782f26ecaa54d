"""The principal and the scopes of a new lease: local user ids are mapped to principals.

Guarantees that a user id without a mapping gets nothing unless the configuration says so by name, and that a lease
never carries a scope that its identity may not have.
"""

from typing import Any, Protocol

import msgspec

from frontend.errors import GateError
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.settings import IdentitySettings, PrincipalMapping

DEV_PRINCIPAL = "dev:anonymous"


class Peer(Protocol):
    """A connection's peer credentials, as far as they are read."""

    @property
    def uid(self) -> int:
        """User id, as the kernel saw it when the connection was made."""


class Identity(msgspec.Struct, frozen=True):
    """A caller that is known by name. `scopes_allowed` None: any; `method` goes into leases and audit events.

    `issuer` and `subject` are those of its token, or `subject` is the name of its certificate; either ends at `ends_at`
    (Unix seconds). `jkt` is the thumbprint of the key that the token is bound to.
    """

    principal: str
    scopes_allowed: tuple[str, ...] | None
    owner: str | None
    method: str
    issuer: str | None = None
    subject: str | None = None
    ends_at: int | None = None
    binding: str | None = None
    jkt: str | None = None

    def check(self, jkt: str, now: float) -> None:
        """Raise GateError identity_forbidden for a key that is not the one of the token, and for a token or certificate
        that has ended meanwhile."""
        if self.ends_at is not None and self.ends_at <= now:
            raise GateError(
                "identity_forbidden", cause="the token or certificate ended before its request was read",
                message="this token or certificate has ended",
            )  # fmt: skip
        if self.jkt is not None and self.jkt != jkt:
            raise GateError(
                "identity_forbidden", cause="the token is bound to another key than dpop_jwk",
                message="this token gives no identity here",
            )  # fmt: skip

    @property
    def told(self) -> dict[str, Any]:
        """Fields of events of its leases."""
        names = {"principal": self.principal, "owner": self.owner}
        return names | IdentityOrigin(self.method, self.issuer, self.subject, self.binding).as_fields()


def identify(settings: IdentitySettings, peer: Peer | None) -> Identity:
    """Identify the process at the other end. `peer` None: the connection has no peer credentials (TCP).

    Raises GateError: identity_forbidden for a user without a mapping, identity_provider_unavailable when there is no
    such provider, or it can't identify the other end of this connection.
    """
    if settings.provider == "none":
        return Identity(DEV_PRINCIPAL, None, None, "none")
    if settings.provider != "peercred":
        raise GateError("identity_provider_unavailable", cause="no such identity provider")
    if peer is None:
        # Not a denial of this caller: over TCP no caller can be told from another.
        raise GateError("identity_provider_unavailable", cause="a TCP connection does not show its user")
    mapping = settings.principals.get(str(peer.uid))
    if mapping is None:
        if not settings.allow_unmapped:
            raise GateError(
                "identity_forbidden", cause=f"uid {peer.uid} has no mapping", message="this user has no identity here"
            )
        mapping = PrincipalMapping(principal=f"uid:{peer.uid}")
    return Identity(mapping.principal, mapping.scopes, mapping.owner, "peercred")


def intersect_scopes(requested: tuple[str, ...], allowed: tuple[str, ...] | None) -> tuple[str, ...]:
    """Those requested that are allowed (None: all are), each once, in the order requested.

    Raises GateError scope_not_permitted when none is left.
    """
    granted = tuple(dict.fromkeys(scope for scope in requested if allowed is None or scope in allowed))
    if not granted:
        raise GateError("scope_not_permitted", cause="no requested scope is allowed to this identity")
    return granted
