"""`gateway ledger`: work on a ledger file without the service."""

import argparse
import os
import sys
from pathlib import Path

from supervisor.commands import Commands
from supervisor.programs import INTERPRETER


def add(commands: Commands) -> None:
    """Put `ledger` beside the other commands."""
    ledger = commands.add_parser("ledger", help="work on a ledger file without the service")
    ledger_commands = ledger.add_subparsers(title="commands", required=True, metavar="COMMAND")
    verify = ledger_commands.add_parser("verify", help="check the chain of events and every receipt's signature")
    verify.add_argument("file", type=Path, metavar="FILE", help="ledger (SQLite file) or a copy of one")
    verify.add_argument("--keys", type=Path, required=True, metavar="FILE", help="receipt keys (JWKS)")
    verify.set_defaults(run=_verify)


def _verify(options: argparse.Namespace) -> int:
    command = [*INTERPRETER, "notary.offline", str(options.file), "--keys", str(options.keys)]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606 - our own interpreter and module
