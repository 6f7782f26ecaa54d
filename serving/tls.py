"""The server's certificate, as its files have it now.

A change of the files is in force within 30 seconds, for connections that begin after it. Files that can't be loaded
change nothing: the certificate from before goes on, and a log line says so.
"""

import argparse
import os
import ssl
from collections.abc import Callable, Sequence
from typing import Final

import trio

from frontend.telemetry.logs import log

LOOK_SECONDS: Final = 10.0
"""Between two looks at the files."""
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


class TlsFilesWrong(Exception):
    """Certificate or key can't be loaded."""


def tls_context(certificate: str, key: str, protocols: Sequence[str] = ("http/1.1",)) -> ssl.SSLContext:
    """A context with the certificate (and the ones between it and a root) and its key, both PEM. Raises
    TlsFilesWrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0  # each connection proves a certificate of its client itself
    context.set_alpn_protocols(list(protocols))
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TlsFilesWrong(f"{certificate} with {key}: {why}") from None
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; a key without a password is needed")


class FollowedCertificate:
    """The context in force for new connections. `load` makes one from the files and raises TlsFilesWrong, at the start
    too."""

    def __init__(self, files: Sequence[str], load: Callable[[], ssl.SSLContext]) -> None:
        self._files = files
        self._load = load
        self._seen = self._look()
        self.context = load()

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
            self.context = self._load()
        except TlsFilesWrong as wrong:
            log.error("certificate not loaded; the one from before is served", problem=str(wrong))
        else:
            self._seen = now
            log.info("certificate loaded", files=list(self._files))

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_state(file) for file in self._files]


def _state(file: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def add_tls_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, as the command of the process gives them."""
    parser.add_argument("--tls-certificate")
    parser.add_argument("--tls-key")


def given_certificate(options: argparse.Namespace) -> FollowedCertificate | None:
    """The certificate that they name; None without one. Raises TlsFilesWrong."""
    if options.tls_certificate is None:
        return None
    files: tuple[str, str] = (options.tls_certificate, options.tls_key)
    return FollowedCertificate(files, lambda: tls_context(*files))
