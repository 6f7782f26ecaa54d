"""The server's certificate, as its files have it now, and the context that verifies clients' certificates.

A change of the files is in force for each connection that begins after it; the ones that are open keep what they have.
Files that can't be loaded change nothing: the certificate from before goes on, and a log line says so.
"""

import os
import ssl
from typing import Final

import trio

from frontend.telemetry.logs import log
from ipc.edge_settings import EdgeTlsSettings

LOOK_SECONDS: Final = 10.0
"""Between two looks at the files."""
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


class TlsFilesWrong(Exception):
    """Certificate, key or roots can't be loaded."""


def tls_context(settings: EdgeTlsSettings) -> ssl.SSLContext:
    """The context of new connections. Raises TlsFilesWrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0  # each connection proves its certificate itself
    context.set_alpn_protocols(["h2", "http/1.1"])
    file = settings.certificate_file
    try:
        context.load_cert_chain(file, settings.key_file, password=_no_password)
        if settings.client_ca_file is not None:
            file = settings.client_ca_file
            context.load_verify_locations(file)
            context.verify_mode = ssl.CERT_REQUIRED if settings.require_client_certificate else ssl.CERT_OPTIONAL
    except (OSError, ValueError) as error:
        raise TlsFilesWrong(f"{file}: {error}") from None
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; a key without a password is needed")


class FollowedCertificate:
    """The context in force. Raises TlsFilesWrong at the start."""

    def __init__(self, settings: EdgeTlsSettings) -> None:
        self._settings = settings
        self._seen = self._look()
        self.context = tls_context(settings)

    async def follow(self) -> None:
        """Load the files anew when they change, until cancelled."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            self.look_again()

    def look_again(self) -> None:
        """Load the files if they differ from those that were loaded last."""
        now = self._look()
        if now == self._seen:
            return
        try:
            self.context = tls_context(self._settings)
        except TlsFilesWrong as wrong:
            log.error("certificate not loaded; the one from before is served", problem=str(wrong))
        else:
            self._seen = now
            log.info("certificate loaded", file=self._settings.certificate_file)

    def _look(self) -> tuple[tuple[int, int, int] | None, ...]:
        files = (self._settings.certificate_file, self._settings.key_file, self._settings.client_ca_file)
        return tuple(_state(file) for file in files if file is not None)


def _state(file: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
