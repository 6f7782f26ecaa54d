"""`python -m bridge.main …`: behind `gateway mcp-bridge`, which has opened the listening socket.

Serves an MCP server on standard input and output as streamable HTTP until SIGTERM or SIGINT, then ends every server.
SECURITY: it gives up every capability, and that it could gain any, before it starts a server: servers are programs of
others, and have the rights of the bridge's user alone. No part of a gateway: it holds no key.
"""

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from typing import Final

import trio
from setproctitle import setproctitle

from bridge.endpoint import MAX_BODY, PATH, Endpoint
from bridge.sessions import BridgeSessions
from frontend.telemetry.logs import configure_logs, log
from ipc.process.exits import Exit
from ipc.process.parent import refuse_core_dumps
from ipc.process.stderr import own_stderr
from ipc.walls.privileges import User, become, keep_capabilities, refuse_new_privileges
from serving.limits import ServingLimits
from serving.server import serve_until_signal

LIMITS: Final = ServingLimits(max_connections=256, max_body=MAX_BODY, send_seconds=30)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py."""
    options = _options(arguments)
    setproctitle("gateway: mcp-bridge")
    own_stderr()
    configure_logs("mcp-bridge")
    if options.uid is not None:
        become(User(options.uid, options.gid))
    keep_capabilities()
    refuse_new_privileges()
    refuse_core_dumps()
    os.umask(0o077)
    os.set_inheritable(options.listen_fd, False)
    trio.run(_serve, socket.socket(fileno=options.listen_fd), options)
    return Exit.OK


async def _serve(sock: socket.socket, options: argparse.Namespace) -> None:
    async with trio.open_nursery() as nursery:
        sessions = BridgeSessions(options.command, nursery)
        sessions.prepare()
        log.info("serving", url=f"http://{options.address}{PATH}", program=options.command[0], uid=os.getuid())
        try:
            await serve_until_signal("mcp-bridge", sock, Endpoint(sessions, options.host).respond, LIMITS)
        finally:
            sessions.end_all("the bridge ended")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gateway mcp-bridge", allow_abbrev=False)
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--host", action="append", default=[])
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("command", nargs="+")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
