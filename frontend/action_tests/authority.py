"""A certificate authority for one run of tests, and a certificate of it for the hosts of the played upstream."""

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

AUTHORITY = "authority.pem"
"""The file that the gateway trusts instead of the system's authorities."""
_LIFE = datetime.timedelta(days=1)


def make_authority(folder: Path, hosts: tuple[str, ...]) -> ssl.SSLContext:
    """Write the authority's certificate; return the context of a server with these names."""
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name("gateway test actions")
    root = _certificate(issuer, issuer, authority, authority, x509.BasicConstraints(ca=True, path_length=0))
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in (*hosts, "localhost")])
    leaf = _certificate(_name("played upstream"), issuer, server, authority, names)
    (folder / AUTHORITY).write_bytes(root.public_bytes(serialization.Encoding.PEM))
    chain = folder / "upstream.pem"
    chain.touch(mode=0o600)
    chain.write_bytes(
        server.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + leaf.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
) -> x509.Certificate:  # fmt: skip
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _LIFE)
        .not_valid_after(now + _LIFE)
        .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return builder.sign(signer, hashes.SHA256())
