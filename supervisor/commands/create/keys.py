"""`gateway keys`: make the keys that a configuration names, rotate them, list them."""

import argparse
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.commands import Commands, rotation
from supervisor.commands.create.provision import provision
from supervisor.commands.named import add_gateway, named_settings
from supervisor.dev.keys import make_keys


def add(commands: Commands) -> None:
    """Put `keys` beside the other commands."""
    keys = commands.add_parser("keys", help="make, rotate and list the keys of a gateway")
    keys_commands = keys.add_subparsers(title="commands", required=True, metavar="COMMAND")
    make = keys_commands.add_parser(
        "make", help="make signing keys and one operator's credential; existing files are kept"
    )
    make.add_argument("folder", type=Path, metavar="DIR", help="folder of the keys, mode 0700")
    make.add_argument("--operator", default="admin", metavar="NAME", help="the operator's name (default admin)")
    make.set_defaults(run=_make)

    rotate = keys_commands.add_parser(
        "rotate",
        help="replace a signing key; a running gateway uses the new one without a restart",
        description="Make another signing key in the place of the one in use. What the key before signed stays good: "
        "leases until they expire, receipts for ever. Run it as the user that the gateway runs as.",
    )
    rotate.add_argument(
        "--purpose", required=True, choices=("receipt", "lease", "grant", "checkpoint"), help="purpose of the key"
    )
    rotate.add_argument(
        "--forget-previous", action="store_true", help="refuse from now on the leases that earlier keys signed"
    )
    add_gateway(rotate)
    rotate.set_defaults(run=_rotate)

    listing = keys_commands.add_parser("list", help="show every signing key: purpose, state, id, times, file")
    add_gateway(listing)
    listing.set_defaults(run=_list)


def _make(options: argparse.Namespace) -> int:
    print(provision(options.folder, options.operator, make_keys), end="")
    return Exit.OK


def _rotate(options: argparse.Namespace) -> int:
    settings = named_settings(options)
    if settings is None:
        return Exit.CONFIG
    print(rotation.rotate(settings, options.purpose, forget_previous=options.forget_previous), end="")
    return Exit.OK


def _list(options: argparse.Namespace) -> int:
    settings = named_settings(options)
    if settings is None:
        return Exit.CONFIG
    print(rotation.listing(settings), end="")
    return Exit.OK
