"""`gateway dev`: serve on this machine without any configuration."""

import argparse
import os
import sys
from pathlib import Path

from ipc.process.exits import Exit
from ipc.process.process_speed import leave
from supervisor.commands import Commands
from supervisor.dev import settings
from supervisor.settings.problems import report


def add(commands: Commands) -> None:
    """Put `dev` beside the other commands."""
    develop = commands.add_parser(
        "dev",
        help="serve on this machine without any configuration; weakened, for development only",
        description="Serve without any configuration: embedded stores, example actions, keys and one operator made at "
        "the first start and kept. Prints one line of JSON on standard output when it serves.",
    )
    develop.add_argument(
        "--listen",
        metavar="ADDR:PORT",
        help=f"TCP address (default {settings.DEFAULT_LISTEN}; port 0 picks a free one)",
    )
    develop.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="state directory (default ~/.local/state/gateway-dev)"
    )
    develop.add_argument("--config", type=Path, metavar="FILE", help="configuration that overrides dev defaults (TOML)")
    develop.add_argument("--ready-file", type=Path, metavar="FILE", help="also write the ready line to this file")
    develop.add_argument(
        "--no-upstream", action="store_true", help="start no example upstream at upstream.gateway.test"
    )
    develop.add_argument(
        "--compat-envelope",
        action="store_true",
        help="answer the list of actions in the form that latchgate-langchain reads",
    )
    develop.add_argument(
        "--console", action="store_true", help="also serve the operators' page, and print a link that signs in once"
    )
    develop.set_defaults(run=_dev)


def _dev(options: argparse.Namespace) -> int:
    has_upstream = not options.no_upstream
    given = settings.DevOptions(
        options.listen, options.state_dir, options.config, options.ready_file, has_upstream, options.compat_envelope,
        options.console,
    )  # fmt: skip
    loaded = settings.load_dev(given, os.environ)
    if loaded.settings is None:
        print(report(loaded.problems), end="", file=sys.stderr)
        return Exit.CONFIG
    from supervisor.dev.start import prepare_dev
    from supervisor.launch import launch

    return leave(launch(prepare_dev(loaded, given, os.environ, options.programs), os.environ, options.programs))
