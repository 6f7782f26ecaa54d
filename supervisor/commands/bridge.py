"""`gateway mcp-bridge`: serve an MCP server on standard input and output as HTTP, in a process of its own."""

import argparse
import ipaddress
import os
import pwd
import re
import shutil
import sys

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.programs import INTERPRETER
from supervisor.refusal import Refused
from supervisor.settings.sections.addresses import split_address
from supervisor.sockets import Listener, listen_tcp

_MODULE = "bridge.main"
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def add(commands: Commands) -> None:
    """Put `mcp-bridge` beside the other commands."""
    bridge = commands.add_parser(
        "mcp-bridge",
        help="serve an MCP server on standard input and output as HTTP on loopback",
        description="Serve an MCP server that speaks on standard input and output as streamable HTTP at /mcp, so that "
        "it can be an upstream of actions. Each session gets a server of its own. Neither bridge nor server has a "
        "capability or can gain one.",
        epilog="example: gateway mcp-bridge --listen 127.0.0.1:8811 -- mcp-server-time --local-timezone UTC",
    )
    bridge.add_argument("--listen", metavar="ADDRESS:PORT", required=True, help="a loopback address")
    bridge.add_argument(
        "--host", metavar="NAME", action="append", default=[],
        help="a name that clients use in Host, beside 127.0.0.1, [::1] and localhost; may be repeated",
    )  # fmt: skip
    bridge.add_argument("--user", metavar="NAME", help="the user to become; needed when it is started by root")
    bridge.add_argument(
        "command", nargs="+", metavar="COMMAND", help="the server's program and its arguments, behind --"
    )
    bridge.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    for name in options.host:
        if _HOST.fullmatch(name) is None:
            raise Refused(Exit.USAGE, f"--host {name!a}: must be a host's name without a port.")
    program = shutil.which(options.command[0])
    if program is None:
        raise Refused(Exit.USAGE, f"{options.command[0]!a} is no program that can be started.")
    listener = _listener(options.listen)
    user = _user(options.user)
    os.set_inheritable(listener.sock.fileno(), True)
    arguments = ["--listen-fd", str(listener.sock.fileno()), "--address", listener.address]
    if user is not None:
        arguments += ["--uid", str(user.pw_uid), "--gid", str(user.pw_gid)]
        os.environ.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name)
    for name in options.host:
        arguments += ["--host", name]
    sys.stdout.flush()
    os.execv(  # noqa: S606 - our own interpreter and module
        sys.executable, [*INTERPRETER, _MODULE, *arguments, "--", program, *options.command[1:]]
    )


def _listener(where: str) -> Listener:
    try:
        host, _ = split_address(where)
    except ValueError:
        host = ""
    if not host or not ipaddress.ip_address(host).is_loopback:
        raise Refused(Exit.USAGE, f"--listen {where!a}: must be an address of this machine alone, like 127.0.0.1:8811.")
    return listen_tcp(where, "mcp-bridge")


def _user(name: str | None) -> pwd.struct_passwd | None:
    """The user to become; None: the one that started it. Raises Refused."""
    if name is None:
        if os.geteuid() == 0:
            raise Refused(
                Exit.NO_PERMISSION,
                "an MCP server does not get root's files: start the bridge as another user, or add --user NAME.",
            )
        return None
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise Refused(Exit.USAGE, f"--user {name!a}: there is no such user.") from None
    if os.geteuid() not in (0, user.pw_uid):
        raise Refused(Exit.NO_PERMISSION, f"--user {name!a}: root alone can become another user.")
    return user if os.geteuid() == 0 else None
