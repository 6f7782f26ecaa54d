"""`gateway ledger`: work on a ledger file without the service."""

import argparse
import os
import sys
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.commands.inspect.rollback import accept
from supervisor.commands.inspect.sealing import add_seal
from supervisor.commands.named import add_gateway, named_settings
from supervisor.programs import INTERPRETER


def add(commands: Commands) -> None:
    """Put `ledger` beside the other commands."""
    ledger = commands.add_parser("ledger", help="work on a ledger file without the service")
    ledger_commands = ledger.add_subparsers(title="commands", required=True, metavar="COMMAND")
    verify = ledger_commands.add_parser("verify", help="check chain, tree and every receipt's signature")
    verify.add_argument(
        "ledger",
        metavar="LEDGER",
        nargs="+",
        help="a ledger file, a copy of one, or the URL of a PostgreSQL as in ledger.url; or sealed segments",
    )
    verify.add_argument("--password-file", metavar="FILE", help="file with the password for a PostgreSQL")
    verify.add_argument("--ca-file", metavar="FILE", help="certificates (PEM) that verify a PostgreSQL over TLS")
    verify.add_argument(
        "--keys", type=Path, metavar="FILE", help="receipt keys (JWKS); without it those that a segment carries"
    )
    verify.add_argument("--segments", type=Path, metavar="DIR", help="check all sealed segments of the ledger, too")
    verify.add_argument(
        "--checkpoint", type=Path, action="append", default=[], metavar="FILE",
        help="an earlier checkpoint that the ledger must continue; may be repeated",
    )  # fmt: skip
    verify.add_argument(
        "--checkpoint-key", action="append", default=[], metavar="KEY",
        help="verifier key (name+id+base64) that must have signed those checkpoints; several, where it was rotated",
    )  # fmt: skip
    verify.set_defaults(run=_verify)
    add_seal(ledger_commands)

    rollback = ledger_commands.add_parser(
        "accept-rollback",
        help="go on from a ledger that does not continue its last checkpoint",
        description="Go on from a ledger that was put back, cut or lost, which a start refuses with exit code 9. "
        "Leaves an event with the reason, ends every lease, and keeps the file of checkpoints of before. The "
        "gateway must be stopped. Run it as the user that the gateway runs as.",
    )
    clock = ledger_commands.add_parser(
        "accept-clock",
        help="go on with a clock that is behind the newest evidence",
        description="Go on after the clock was ahead and has been set right. Without it every call is 503 clock_error "
        "until the time of the newest evidence. Leaves an event with the reason, both times and the user, and ends "
        "every lease. The gateway must be stopped. Run it as the user that the gateway runs as.",
    )
    for parser, program in ((rollback, "notary.programs.accept_rollback"), (clock, "notary.programs.accept_clock")):
        parser.add_argument("--reason", required=True, metavar="TEXT", help="the reason, for the audit event")
        add_gateway(parser)
        parser.set_defaults(run=_accept, program=program)


def _accept(options: argparse.Namespace) -> int:
    settings = named_settings(options)
    if settings is None:
        return Exit.CONFIG
    print(accept(options.program, settings, options.reason), end="")
    return Exit.OK


def _verify(options: argparse.Namespace) -> int:
    command = [*INTERPRETER, "notary.programs.offline", *options.ledger]
    for name in ("keys", "segments", "password_file", "ca_file"):
        if (given := getattr(options, name)) is not None:
            command += [f"--{name.replace('_', '-')}", str(given)]
    command += [part for path in options.checkpoint for part in ("--checkpoint", str(path))]
    command += [part for key in options.checkpoint_key for part in ("--checkpoint-key", key)]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606 - our own interpreter and module
