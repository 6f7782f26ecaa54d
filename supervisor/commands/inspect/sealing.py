"""`gateway ledger seal`: move the oldest part of a ledger to a file of its own, while the gateway is stopped."""

import argparse
from pathlib import Path
from typing import Final

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.commands.inspect.rollback import local_user, run_alone
from supervisor.commands.named import add_gateway, named_settings

MOST_SECONDS: Final = 24 * 3600.0


def add_seal(commands: Commands) -> None:
    """Put `seal` beside the other commands of `ledger`."""
    seal = commands.add_parser(
        "seal",
        help="move the oldest part of the ledger to a file of its own",
        description="Move events, intents and receipts from before a time, up to a checkpoint, to a segment: a file "
        "that verifies by itself. Nothing is deleted before the segment was flushed and read back. The gateway must "
        "be stopped, and with a shared ledger every gateway. Run it as the user that the gateway runs as.",
    )
    seal.add_argument("--before", required=True, metavar="TIME", help="ISO 8601; at least a day ago")
    seal.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for segments; made if missing")
    add_gateway(seal)
    seal.set_defaults(run=_seal)


def _seal(options: argparse.Namespace) -> int:
    settings = named_settings(options)
    if settings is None:
        return Exit.CONFIG
    arguments = ["--before", options.before, "--out", str(options.out.absolute()), "--by", local_user()]
    print(run_alone("notary.seal", settings, arguments, MOST_SECONDS), end="")
    return Exit.OK
