"""Client certificates, by whose names agents beyond this host ask for leases.

The edge verifies chain and key in TLS and hands the certificate on (RFC 9440). Guarantees that exactly one name of the
certificate is one that the configuration in force knows, that the certificate is within its times by our clock, and
that no word of it but that name reaches a log, a refusal or evidence.
"""

import base64
import math
import re
import warnings
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec
from cryptography import x509

from frontend.auth.formed import why_not_formed
from frontend.auth.identity import Identity
from frontend.clock import TimeSource
from frontend.errors import GateError
from ipc.configuration.certificates import CertificateSettings
from ipc.settings import IdentitySettings
from ipc.texts.san_patterns import DNS, EMAIL, URI, SanPattern, most_special, parse_pattern, parse_san

MAX_CERTIFICATE_CHARACTERS: Final = 16_384
MAX_NAMES: Final = 16
X509: Final = "x509"
"""`identity_method` of these identities."""
_FIELD: Final = re.compile(r":([A-Za-z0-9+/]+={0,2}):", re.ASCII)
_KINDS: Final = {x509.UniformResourceIdentifier: URI, x509.DNSName: DNS, x509.RFC822Name: EMAIL}
_UNREADABLE: Final = (
    ValueError, TypeError, OverflowError, Warning, x509.InvalidVersion, x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)  # fmt: skip


class ShownCertificate(msgspec.Struct, frozen=True):
    """The fields of a certificate that count."""

    names: tuple[tuple[str, str], ...]
    """(kind, name): the URIs, DNS names and e-mail addresses."""
    begins: datetime
    ends: datetime


def _refuse(cause: str) -> GateError:
    return GateError("identity_forbidden", cause=cause, message="this certificate gives no identity here")


class CertificateJudge:
    """Judges certificates by the rows of the configuration in force. Remembers none: each is judged anew."""

    def __init__(self, clock: TimeSource, settings: Callable[[], IdentitySettings]) -> None:
        self._clock = clock
        self._settings = settings

    @property
    def has_rows(self) -> bool:
        """True if certificates may give identities at all."""
        return bool(self._settings().certificates)

    def judge(self, field: str) -> Identity:
        """The identity of the caller whose certificate this `Client-Cert` is. Raises GateError: identity_forbidden,
        clock_error."""
        now = self._clock.now()
        shown = _read(field)
        if not shown.begins.timestamp() <= now < shown.ends.timestamp():
            raise _refuse("the certificate is not within its times")
        # SECURITY: with two URIs a certificate is no SVID: another verifier could take the other one for its holder.
        if [kind for kind, _ in shown.names].count(URI) > 1:
            raise _refuse("the certificate has more than one URI")
        settings = self._settings()
        rows = {pattern: row for row in settings.certificates if (pattern := parse_pattern(row.san)) is not None}
        names = [name for kind, text in shown.names if (name := parse_san(kind, text)) is not None]
        known = [(name, pattern) for name in names if (pattern := most_special(rows, name)) is not None]
        if len(known) != 1:
            raise _refuse(f"{len(known)} names of the certificate are known here, and one must be")
        ((name, pattern),) = known
        row = rows[pattern]
        principal = _principal(row, pattern, name)
        if principal != row.principal and (why := why_not_formed(principal, settings)) is not None:
            raise _refuse(f"the name of the certificate {why}")
        return Identity(principal, row.scopes, row.owner, X509, None, name.text, math.floor(shown.ends.timestamp()))


def _principal(row: CertificateSettings, pattern: SanPattern, name: SanPattern) -> str:
    """The principal of a holder of this name, which matches the row's pattern."""
    if row.principal.endswith("{*}"):
        return row.principal.removesuffix("{*}") + pattern.part_of(name)
    return row.principal.replace("{san}", name.spelled)


def _read(field: str) -> ShownCertificate:
    """Read a byte sequence (RFC 8941) that is a certificate in DER."""
    match = _FIELD.fullmatch(field) if len(field) <= MAX_CERTIFICATE_CHARACTERS else None
    if match is None:
        raise _refuse("the certificate is no byte sequence of a bounded size")
    try:
        data = base64.b64decode(match[1], validate=True)
        with warnings.catch_warnings():
            # Forms that RFC 5280 does not allow and that the library still reads; said on standard error otherwise.
            warnings.simplefilter("error")
            certificate = x509.load_der_x509_certificate(data)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        kinds = [(_KINDS[type(name)], str(name.value)) for name in names if type(name) in _KINDS]
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except x509.ExtensionNotFound:
        raise _refuse("the certificate has no subject alternative names") from None
    except _UNREADABLE:
        raise _refuse("the certificate, or the extension with its names, can't be read") from None
    if len(kinds) > MAX_NAMES:
        raise _refuse(f"the certificate has more than {MAX_NAMES} names")
    return ShownCertificate(tuple(kinds), begins, ends)
