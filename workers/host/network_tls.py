"""TLS with the upstreams of private networks: whom to trust, and the client certificate that is shown.

SECURITY: the template knows paths and authorities alone. A private key is read by a worker of the http profile, between
its fork and its walls: no other process has it in its memory.
"""

import ssl
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ipc.configuration.networks import NetworkTls
from ipc.network.tls import show_certificate
from workers.host.connection import make_tls
from workers.log import write_line

Authorities: TypeAlias = Mapping[NetworkTls, ssl.SSLContext | None]
"""None: the files can't be used, and no upstream is connected to."""


def read_authorities(networks: Iterable[NetworkTls]) -> Authorities:
    """The contexts of these networks, without a client certificate."""
    return {files: _trusting(files) for files in networks}


def with_certificates(authorities: Authorities) -> dict[str, ssl.SSLContext | None]:
    """By `NetworkTls.digest` the contexts of this process, which show their client certificate."""
    return {files.digest: _certified(files, context) for files, context in authorities.items()}


def _trusting(files: NetworkTls) -> ssl.SSLContext | None:
    try:
        return make_tls(files.ca_file)
    except OSError as error:
        write_line("error", "ca_file of a private network can't be used", file=files.ca_file, reason=str(error))
        return None


def _certified(files: NetworkTls, context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    pair = files.client_certificate
    if context is None or pair is None:
        return context
    try:
        show_certificate(context, files)
    except OSError as error:
        reason = error.strerror or str(error)
        write_line(
            "error", "client_certificate of a private network can't be used", file=pair.key_file, reason=reason
        )  # fmt: skip
        return None
    return context
