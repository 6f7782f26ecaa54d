"""`gateway new action NAME`: a first action of one's own, ready to be called in dev mode."""

import argparse
from pathlib import Path

from ipc.exits import Exit
from supervisor.commands import Commands
from supervisor.starter import new_action


def add(commands: Commands) -> None:
    """Put `new` beside the other commands."""
    new = commands.add_parser("new", help="begin an action of your own")
    kinds = new.add_subparsers(title="what", required=True, metavar="WHAT")
    action = kinds.add_parser(
        "action",
        help="a manifest with a schema, and the right to call it, for gateway dev",
        description="Write actions/NAME.yaml, the right of dev:anonymous to call it (policy/data.json), and where they "
        "are not there yet gateway.toml and the default policy. `gateway check --dev` accepts the result as it is. A "
        "manifest that is there is never written over.",
    )
    action.add_argument("name", metavar="NAME", help="lower-case letters, digits and _")
    action.add_argument(
        "--dir", type=Path, default=Path("my-gateway"), metavar="DIR", help="where (default my-gateway)"
    )
    action.set_defaults(run=_action)


def _action(options: argparse.Namespace) -> int:
    print(new_action(options.dir, options.name), end="")
    return Exit.OK
