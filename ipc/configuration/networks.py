"""Private networks that effects may lead into: as the configuration has them, and as a plan carries them.

Holds values and does nothing by itself; ipc/network/reach.py judges by them.
"""

import hashlib

import msgspec


class ClientCertificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`client_certificate` of a network: the certificate chain and the private key, files in PEM, for mTLS."""

    certificate_file: str = ""
    key_file: str = ""


class NetworkTls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files that TLS with the upstreams of a network takes: paths, never their content."""

    ca_file: str | None = None
    client_certificate: ClientCertificate | None = None

    @property
    def digest(self) -> str:
        """The name of these paths in a plan."""
        return "sha256:" + hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class PlanNetwork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A network that the target of a plan may lead into."""

    name: str
    domains: tuple[str, ...]
    """Lower case names; `*.` before at least two labels matches any name below."""
    ranges: tuple[str, ...]
    ports: tuple[int, ...] = ()
    """Empty: whichever the URL names."""
    unsafe_plain_secrets: bool = False
    """Secrets may go over http to its names."""
    tls: str | None = None
    """`NetworkTls.digest`; None: the system's authorities, and no client certificate."""


class NetworkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[egress.networks]]`: names that may lead into these ranges, and nowhere else."""

    name: str
    """Its name in evidence, logs and the operator's view."""
    domains: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    ca_file: str | None = None
    """Certificates in PEM: the authorities for these names instead of the system's."""
    client_certificate: ClientCertificate | None = None
    unsafe_plain_secrets: bool = False

    @property
    def tls(self) -> NetworkTls | None:
        """The files of its own; None: the system's authorities, and no client certificate."""
        if self.ca_file is None and self.client_certificate is None:
            return None
        return NetworkTls(self.ca_file, self.client_certificate)

    @property
    def planned(self) -> PlanNetwork:
        """The network as a plan carries it."""
        tls = None if self.tls is None else self.tls.digest
        return PlanNetwork(self.name, self.domains, self.ranges, self.ports, self.unsafe_plain_secrets, tls)
