"""`python -m edge.main …`: behind `gateway edge`, which has checked the settings and opened the listening socket.

Serves agents on other hosts until SIGTERM or SIGINT. It holds no key of the gateway and no secret but the key of its
certificate. SECURITY: it gives up every capability, and that it could gain any, before it accepts a connection.
"""

import argparse
import os
import resource
import socket
import sys
from collections.abc import Sequence

import msgspec
import trio
from setproctitle import setproctitle

from edge.serving import serve_edge
from edge.tls import EdgeCertificate
from frontend.telemetry.logs import configure_logs, log
from ipc.configuration.edge_settings import EdgeSettings
from ipc.process.exits import Exit
from ipc.process.parent import refuse_core_dumps
from ipc.process.stderr import own_stderr
from ipc.walls.privileges import keep_capabilities, refuse_new_privileges
from serving.tls import TlsFilesWrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py."""
    options = _options(arguments)
    settings = msgspec.json.decode(options.settings, type=EdgeSettings)
    if options.client_library is not None:
        sys.path.append(options.client_library)
    setproctitle("gateway: edge")
    own_stderr()
    configure_logs("edge")
    keep_capabilities()
    refuse_new_privileges()
    refuse_core_dumps()
    os.umask(0o077)
    try:
        certificate = None if settings.tls is None else EdgeCertificate(settings.tls)
    except TlsFilesWrong as wrong:
        print(f"gateway edge: {wrong}", file=sys.stderr)
        return Exit.CONFIG
    if options.listen_fd is None:
        print("configuration is valid")
        return Exit.OK
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.set_inheritable(options.listen_fd, False)
    scheme = "http" if certificate is None else "https"
    log.info("serving", address=f"{scheme}://{options.address}", public_base_url=settings.public_base_url)
    trio.run(serve_edge, settings, socket.socket(fileno=options.listen_fd), certificate)
    return Exit.OK


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gateway edge", allow_abbrev=False)
    parser.add_argument("--settings", required=True)
    parser.add_argument("--listen-fd", type=int)
    parser.add_argument("--address")
    parser.add_argument("--client-library")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
