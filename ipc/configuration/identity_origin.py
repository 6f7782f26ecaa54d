"""The origin of a caller's identity, as leases, holds, policy and evidence name it."""

from typing import Final

import msgspec


class IdentityOrigin(msgspec.Struct, frozen=True):
    """How a caller is known: by its user (`peercred`), a token (`jwt`), a certificate (`x509`), in dev mode also by
    nothing (`none`).

    `issuer` and `subject` are those of its token. A certificate has a `subject` alone, its name, and a user of this
    host has neither.
    """

    method: str
    issuer: str | None = None
    subject: str | None = None
    binding: str | None = None
    """`dpop` for a token that is bound to the key of the lease, or to the one that proves each request to the edge's
    `/mcp`; `bearer` for any other token."""

    def as_fields(self) -> dict[str, str | None]:
        """Members of events, and of policy's input."""
        return {
            "identity_method": self.method, "identity_issuer": self.issuer, "identity_subject": self.subject,
            "token_binding": self.binding,
        }  # fmt: skip


BEARER: Final = "bearer"
DPOP: Final = "dpop"
UNKNOWN = IdentityOrigin("")
"""The origin of a caller of a call that is only supposed."""
