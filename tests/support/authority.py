"""An authority of tests: certificates that it has signed, for servers and for clients that a server asks for one."""

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True)
class Issued:
    """A certificate and its private key, both in PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into one folder; `file` is its own."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = named(name)
        made = unsigned(self._name, self._name, self._key.public_key(), is_authority=True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *names: x509.GeneralName, is_expired: bool = False) -> Issued:
        """A certificate for a host or a client of this name; `names` are its alternative names instead."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = unsigned(named(name), self._name, key.public_key(), is_authority=False, is_expired=is_expired)
        made = made.add_extension(x509.SubjectAlternativeName(names or [x509.DNSName(name)]), critical=False)
        issued = Issued(self._folder / f"{name}.pem", self._folder / f"{name}-key.pem")
        issued.certificate.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        issued.key.write_bytes(pem_of(key))
        issued.key.chmod(0o600)
        return issued

    def server(self, name: str, *, asks_clients: bool = False, is_expired: bool = False) -> ssl.SSLContext:
        """The context of a server of this name; `asks_clients`: it takes clients alone that this authority signed."""
        issued = self.issue(name, is_expired=is_expired)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(issued.certificate, issued.key)
        if asks_clients:
            context.load_verify_locations(self.file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def named(name: str) -> x509.Name:
    """The name of a subject."""
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, is_authority: bool,
    is_expired: bool = False,
) -> x509.CertificateBuilder:  # fmt: skip
    """A certificate of today, to be signed."""
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(hours=-1 if is_expired else 24))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )


def pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The private key as its file has it."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )  # fmt: skip
