"""Certificates of agents elsewhere, as an edge hands them on: no authority is asked about them any more."""

import base64
import datetime
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

KEY = ec.generate_private_key(ec.SECP256R1())
_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "agent")])


def uri(text: str) -> x509.GeneralName:
    """The name of kind URI."""
    return x509.UniformResourceIdentifier(text)


def dns(text: str) -> x509.GeneralName:
    """The name of kind DNS."""
    return x509.DNSName(text)


def email(text: str) -> x509.GeneralName:
    """The name of kind e-mail."""
    return x509.RFC822Name(text)


def client_certificate(names: Sequence[x509.GeneralName], begins: float, ends: float, padding: int = 0) -> bytes:
    """A certificate in DER with these names and times (Unix seconds), with so many bytes in a further extension."""
    made = (
        x509.CertificateBuilder()
        .subject_name(_NAME)
        .issuer_name(_NAME)
        .public_key(KEY.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime.fromtimestamp(int(begins), datetime.UTC))
        .not_valid_after(datetime.datetime.fromtimestamp(int(ends), datetime.UTC))
    )
    if names:
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if padding:
        extra = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.99999.1"), bytes(padding))
        made = made.add_extension(extra, critical=False)
    return made.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def byte_sequence(data: bytes) -> str:
    """The text of these bytes in a header (RFC 8941)."""
    return f":{base64.b64encode(data).decode()}:"
