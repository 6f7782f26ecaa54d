"""`gateway init --production DIR`: everything that a production gateway needs, in one folder, ready to be checked."""

import argparse
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.commands.create.init_production import ProductionFolder, found
from supervisor.dev.keys import make_keys


def add(commands: Commands) -> None:
    """Put `init` beside the other commands."""
    init = commands.add_parser(
        "init",
        help="make configuration, keys, operator and policy of a gateway for production",
        description="Write gateway.toml, signing keys, one operator with an API key and a key for proofs, the default "
        "policy, and an action to try into a folder. `gateway check` accepts it as it is. Nothing that is there is "
        "written over: a folder that holds a gateway.toml is refused.",
    )
    init.add_argument("--production", type=Path, required=True, metavar="DIR", help="the folder, like /etc/gateway")
    init.add_argument("--operator", default="admin", metavar="NAME", help="the operator's name (default admin)")
    init.add_argument(
        "--public-base-url",
        default="https://gateway.example",
        metavar="URL",
        help="public URL, for which agents make their proofs",
    )
    init.add_argument(
        "--state-dir", type=Path, default=Path("/var/lib/gateway"), metavar="DIR",
        help="state directory with the ledger (default /var/lib/gateway)",
    )  # fmt: skip
    init.add_argument(
        "--run-dir", type=Path, default=Path("/run/gateway"), metavar="DIR",
        help="folder of the two sockets (default /run/gateway)",
    )  # fmt: skip
    init.set_defaults(run=_init)


def _init(options: argparse.Namespace) -> int:
    place = ProductionFolder(options.production, options.state_dir, options.run_dir, options.public_base_url)
    print(found(place, options.operator, make_keys), end="")
    return Exit.OK
