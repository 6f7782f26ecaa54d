"""The edge's certificate, followed, with the verification of clients' certificates where it is asked for."""

import ssl
from functools import partial

from ipc.edge_settings import EdgeTlsSettings
from serving.tls import FollowedCertificate, TlsFilesWrong, tls_context


def edge_certificate(settings: EdgeTlsSettings) -> FollowedCertificate:
    """Certificate, key and roots as their files have them now. Raises TlsFilesWrong."""
    files = (settings.certificate_file, settings.key_file, settings.client_ca_file)
    return FollowedCertificate([file for file in files if file is not None], partial(_context, settings))


def _context(settings: EdgeTlsSettings) -> ssl.SSLContext:
    context = tls_context(settings.certificate_file, settings.key_file, ("h2", "http/1.1"))
    if settings.client_ca_file is not None:
        try:
            context.load_verify_locations(settings.client_ca_file)
        except (OSError, ValueError) as error:
            raise TlsFilesWrong(f"{settings.client_ca_file}: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED if settings.require_client_certificate else ssl.CERT_OPTIONAL
    return context
