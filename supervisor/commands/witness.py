"""`gateway witness`: cosign the checkpoints of gateways and other logs (C2SP tlog-witness)."""

import argparse
import os
import sys
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.commands.tls import add_tls_options, tls_arguments
from supervisor.programs import INTERPRETER
from supervisor.refusal import Refused
from supervisor.settings.sections.addresses import split_address
from supervisor.sockets import CLIENT_MODE, Listener, listen_tcp, listen_unix

_MODULE = "witness.main"


def add(commands: Commands) -> None:
    """Put `witness` beside the other commands."""
    witness = commands.add_parser("witness", help="cosign checkpoints that continue known logs")
    witness_commands = witness.add_subparsers(title="commands", required=True, metavar="COMMAND")
    serving = witness_commands.add_parser(
        "run",
        help="serve POST /add-checkpoint",
        description="Cosign checkpoints of the logs whose keys are named, as long as each continues the one before. "
        "Run it on another host than the gateway, by other people.",
    )
    key = witness_commands.add_parser("key", help="print the witness's verifier key; make the key if there is none")
    for command in (serving, key):
        command.add_argument(
            "--state", type=Path, required=True, metavar="DIR", help="folder of its key and its records"
        )
        command.add_argument(
            "--name", metavar="NAME", help="name of a new key: a URL without scheme; default HOST/witness"
        )
    place = serving.add_mutually_exclusive_group(required=True)
    place.add_argument("--listen", metavar="ADDRESS:PORT", help="HTTP, or HTTPS with --tls-certificate")
    place.add_argument("--socket", metavar="PATH", help="plain HTTP on a Unix socket, for a reverse proxy")
    add_tls_options(serving)
    serving.add_argument(
        "--log-key", type=Path, action="append", required=True, metavar="FILE",
        help="verifier keys of logs, one a line (gatectl audit checkpoint shows them); may be repeated",
    )  # fmt: skip
    serving.set_defaults(run=_run)
    key.set_defaults(run=_key)


def _run(options: argparse.Namespace) -> int:
    tls = tls_arguments(options)
    if tls and options.socket is not None:
        raise Refused(Exit.USAGE, "--socket is for a reverse proxy, whose TLS it is: leave --tls-certificate out.")
    listener = _listener(options)
    os.set_inheritable(listener.sock.fileno(), True)
    command = ["run", *_common(options), "--listen-fd", str(listener.sock.fileno()), "--address", listener.address]
    command += tls
    return _become([*command, *(part for file in options.log_key for part in ("--log-key", str(file)))])


def _key(options: argparse.Namespace) -> int:
    return _become(["key", *_common(options)])


def _common(options: argparse.Namespace) -> list[str]:
    return ["--state", str(options.state), *(("--name", options.name) if options.name is not None else ())]


def _listener(options: argparse.Namespace) -> Listener:
    if options.socket is not None:
        return listen_unix("witness", options.socket, CLIENT_MODE)
    try:
        split_address(options.listen)
    except ValueError:
        raise Refused(Exit.USAGE, f"--listen {options.listen!a}: must be ADDRESS:PORT, like 127.0.0.1:8100.") from None
    return listen_tcp(options.listen)


def _become(arguments: list[str]) -> int:
    sys.stdout.flush()
    os.execv(sys.executable, [*INTERPRETER, _MODULE, *arguments])  # noqa: S606 - our own interpreter and module
