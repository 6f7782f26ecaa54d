"""TLS as a client, in every process that connects to others: whom to trust is read once, when a context is made.

Guarantees that a context opens no file later: behind walls no file can be opened, and OpenSSL's own look-up of a
certificate in a folder ends a process whose filter does not know it. Names are checked, TLS 1.2 is the least. Never
writes session keys to a file.
"""

import os
import re
import ssl
from contextlib import suppress
from pathlib import Path

from ipc.configuration.networks import NetworkTls

_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]{1,4}")
"""How OpenSSL names the certificates of a folder (c_rehash)."""
_END = b"-----END CERTIFICATE-----"
_REASONS = {
    9: "is not valid yet", 10: "has expired", 18: "is self-signed and not trusted",
    19: "is signed by an unknown authority", 20: "is signed by an unknown authority",
    21: "is signed by an unknown authority", 23: "was revoked", 62: "is not valid for its name",
}  # fmt: skip
"""By X509_V_ERR_* (openssl/x509_vfy.h)."""


def client_context(authorities: str | None = None) -> ssl.SSLContext:
    """A context that trusts the authorities in this file of PEM, or the system's. Blocks for some milliseconds.

    Raises OSError for a file without certificates; what is wrong with the system's is left out.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authorities is not None:
        context.load_verify_locations(authorities)
        return context
    paths = ssl.get_default_verify_paths()
    known: set[bytes] = set()  # to parse a certificate takes a quarter of a millisecond, and most are in both places
    for path in (paths.cafile, *_hashed(paths.capath)):
        if path is not None:
            with suppress(OSError):
                certificates = _certificates(path)
                if not certificates <= known:
                    context.load_verify_locations(path)
                    known |= certificates
    return context


def show_certificate(context: ssl.SSLContext, files: NetworkTls | None) -> None:
    """Have the context show the client certificate that these files hold, if any. Raises OSError."""
    pair = None if files is None else files.client_certificate
    if pair is not None:
        # A key that needs a password would ask for it at the terminal.
        context.load_cert_chain(pair.certificate_file, pair.key_file, password="")


def problem_of(error: ssl.SSLCertVerificationError) -> str:
    """The reason why a certificate was refused, to follow "certificate"; names neither host nor subject."""
    return _REASONS.get(error.verify_code, f"can't be verified (X509 error {error.verify_code})")


def _certificates(path: str) -> set[bytes]:
    """The certificates in a file of PEM, as they are written. Raises OSError."""
    return {part.strip() for part in Path(path).read_bytes().split(_END)}


def _hashed(folder: str | None) -> list[str]:
    """The certificates of a folder, as OpenSSL would look them up."""
    if folder is None:
        return []
    with suppress(OSError):
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if _HASHED.fullmatch(name))
    return []
