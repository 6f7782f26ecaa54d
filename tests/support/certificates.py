"""Certificates that sign themselves, for servers of tests."""

import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.authority import named, pem_of, unsigned


def made_certificate(folder: Path, host: str = "localhost") -> Path:
    """A certificate for a name or an address, its key beside it in `key.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    made = unsigned(named(host), named(host), key.public_key(), is_authority=True)
    made = made.add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
    (folder / "key.pem").write_bytes(pem_of(key))
    path = folder / "certificate.pem"
    path.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return path


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
