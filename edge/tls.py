"""The edge's certificate, followed, with the verification of clients' certificates where it is asked for."""

import re
import ssl
from collections.abc import Callable
from typing import Final

from frontend.telemetry.logs import log
from ipc.configuration.edge_settings import EdgeTlsSettings
from serving.tls import FollowedCertificate, TlsFilesWrong, tls_context

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----[!-~\s]+?-----END CERTIFICATE-----", re.ASCII)


def why_refused(error: BaseException | None) -> str | None:
    """Why the client's certificate ended a handshake, in OpenSSL's words; None where something else ended it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    is_missing = isinstance(error, ssl.SSLError) and error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE"
    return "no certificate" if is_missing else None


class EdgeCertificate(FollowedCertificate):
    """Certificate, key and roots as their files have them now. Raises TlsFilesWrong.

    `roots_gone` is called once a root of clients is in force no more, by which open connections may have been verified.
    """

    def __init__(self, settings: EdgeTlsSettings) -> None:
        self._settings = settings
        self._roots: frozenset[str] = frozenset()
        self.roots_gone: Callable[[], None] = lambda: None
        files = (settings.certificate_file, settings.key_file, settings.client_ca_file)
        super().__init__([file for file in files if file is not None], self._loaded)

    def look_again(self) -> None:
        """Load the files if they differ from those that were loaded last."""
        before = self._roots
        super().look_again()
        if before - self._roots:
            log.info("a root was removed from client_ca_file; connections that showed a certificate end")
            self.roots_gone()

    def _loaded(self) -> ssl.SSLContext:
        settings = self._settings
        context = tls_context(settings.certificate_file, settings.key_file, ("h2", "http/1.1"))
        if settings.client_ca_file is not None:
            try:
                with open(settings.client_ca_file, encoding="latin-1") as file:
                    roots = _PEM.findall(file.read())
                context.load_verify_locations(cadata="\n".join(roots))
            except (OSError, ValueError) as error:
                raise TlsFilesWrong(f"{settings.client_ca_file}: {error}") from None
            context.verify_mode = ssl.CERT_REQUIRED if settings.require_client_certificate else ssl.CERT_OPTIONAL
            self._roots = frozenset(roots)
        return context
