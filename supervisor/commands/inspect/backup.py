"""`gateway backup DIR`: copy what the gateway keeps, while it runs."""

import argparse
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.commands.inspect.backups import back_up
from supervisor.commands.named import add_gateway, named_settings


def add(commands: Commands) -> None:
    """Put `backup` beside the other commands."""
    backup = commands.add_parser(
        "backup",
        help="copy ledger, checkpoints and learned rules while the gateway runs",
        description="Copy the ledger as it is at one moment, with its checkpoints, public keys and learned rules, into "
        "a new folder with mode 0700. The gateway goes on meanwhile. A start refuses the copy until `gateway ledger "
        "accept-rollback` says why it is gone on from (docs/operations.md). Run it as the gateway's user.",
    )
    backup.add_argument("target", type=Path, metavar="DIR", help="the folder to create; it must not exist")
    backup.add_argument(
        "--with-keys", action="store_true", help="copy the signing keys, too; the folder is then as secret as they are"
    )
    add_gateway(backup)
    backup.set_defaults(run=_backup)


def _backup(options: argparse.Namespace) -> int:
    settings = named_settings(options)
    if settings is None:
        return Exit.CONFIG
    print(back_up(settings, options.target, with_keys=options.with_keys), end="")
    return Exit.OK
