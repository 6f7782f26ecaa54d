"""`gateway new action NAME`, `gateway new provider NAME`: an action of one's own, ready to be called in dev mode."""

import argparse
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.commands.create.new_action import new_action
from supervisor.commands.create.new_provider import LANGUAGES, new_provider
from supervisor.commands.create.starters import action_from, listing
from supervisor.refusal import Refused


def add(commands: Commands) -> None:
    """Put `new` beside the other commands."""
    new = commands.add_parser("new", help="start an action of your own")
    kinds = new.add_subparsers(title="what", required=True, metavar="WHAT")
    action = kinds.add_parser(
        "action",
        help="a manifest with a schema, and the right to call it, for gateway dev",
        description="Write actions/NAME.yaml, the right of dev:anonymous to call it (policy/data.json), and where they "
        "are not there yet gateway.toml and the default policy. `gateway check --dev` accepts the result as it is. A "
        "manifest that is there is never written over.",
    )
    action.add_argument(
        "--from", dest="starter", metavar="STARTER", help="begin with a manifest of a well-known service"
    )
    action.add_argument("--list", action="store_true", help="list the starters")
    action.add_argument("name", metavar="NAME", nargs="?", help="lower-case letters, digits and _")
    action.set_defaults(run=_action)
    provider = kinds.add_parser(
        "provider",
        help="an action with a provider of its own, in the language of your choice",
        description="Write providers/NAME: source, the gateway's interface (WIT), a build with pinned tools, a "
        "manifest and a request to try; and what `gateway new action` writes besides. Fetches and builds nothing: "
        "`make -C my-gateway/providers/NAME` does. A folder that is there is never written over.",
    )
    provider.add_argument("--language", required=True, choices=sorted(LANGUAGES), help="its programming language")
    provider.add_argument("name", metavar="NAME", help="lower-case letters, digits and _")
    provider.set_defaults(run=_provider)
    for kind in (action, provider):
        kind.add_argument(
            "--dir", type=Path, default=Path("my-gateway"), metavar="DIR", help="folder (default my-gateway)"
        )


def _action(options: argparse.Namespace) -> int:
    if options.list:
        print(listing(), end="")
        return Exit.OK
    if options.name is None:
        raise Refused(Exit.USAGE, "name the action: gateway new action NAME.")
    if options.starter is not None:
        print(action_from(options.dir, options.name, options.starter), end="")
        return Exit.OK
    print(new_action(options.dir, options.name), end="")
    return Exit.OK


def _provider(options: argparse.Namespace) -> int:
    print(new_provider(options.dir, options.name, options.language), end="")
    return Exit.OK
