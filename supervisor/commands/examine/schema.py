"""`gateway schema`: JSON Schema for editors, made of the tables that check configurations and manifests."""

import argparse
import json
import os
import sys

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.programs import INTERPRETER
from supervisor.settings.describe import configuration_schema


def add(commands: Commands) -> None:
    """Put `schema` beside the other commands."""
    schema = commands.add_parser("schema", help="print JSON Schema for editors")
    kinds = schema.add_subparsers(title="schemas", required=True, metavar="WHAT")
    kinds.add_parser("config", help="of the configuration file (TOML)").set_defaults(run=_config)
    kinds.add_parser("manifest", help="of a manifest (YAML)").set_defaults(run=_manifest)


def _config(_: argparse.Namespace) -> int:
    print(json.dumps(configuration_schema(), indent=2, ensure_ascii=False))
    return Exit.OK


def _manifest(_: argparse.Namespace) -> int:
    sys.stdout.flush()
    # The tables of manifests are the front's; this process has no business with them.
    os.execv(sys.executable, [*INTERPRETER, "frontend.actions.describe"])  # noqa: S606
