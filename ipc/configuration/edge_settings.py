"""Settings of `gateway edge`, as the supervisor's command has checked them and hands them to the process.

The structs are the schema of `edge.toml`. Secrets never appear, only paths to them.
"""

from typing import Annotated

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0.1, le=3600)]
Url = Annotated[str, msgspec.Meta(pattern="^https?://[!#-;=?-~]{1,500}$")]
Count = Annotated[int, msgspec.Meta(ge=1, le=65_536)]


class EdgeTlsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tls]`."""

    certificate_file: str
    """The certificate and the ones between it and a root, as PEM. Followed, as `key_file` is."""
    key_file: str
    client_ca_file: str | None = None
    """Roots of clients' certificates, as PEM. With it clients are asked for one."""
    require_client_certificate: bool = False


class EdgeLimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[limits]`."""

    body_seconds: Seconds = 10.0
    """For a whole request body."""
    send_seconds: Seconds = 30.0
    """For a whole answer to a client that reads slowly."""
    max_connections: Count = 1024
    max_connections_per_address: Count = 64


class EdgeMcpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[mcp]`: `POST /mcp` is served, too."""

    authorization_servers: Annotated[tuple[Url, ...], msgspec.Meta(min_length=1, max_length=8)]
    """Issuers of access tokens, for clients that look for one."""


class EdgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    listen: str
    """ADDRESS:PORT."""
    public_base_url: str
    """As the gateway's own setting: proofs are made for it."""
    client_socket: str
    """Path of the gateway's client socket."""
    tls: EdgeTlsSettings | None = None
    """None: plain HTTP, on loopback alone."""
    limits: EdgeLimitSettings = EdgeLimitSettings()
    mcp: EdgeMcpSettings | None = None
