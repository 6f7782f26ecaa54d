"""`gateway run`: serve with a configuration that is safe for production."""

import argparse
import os
import sys
from pathlib import Path

from ipc.process.exits import Exit
from ipc.process.process_speed import leave
from supervisor.commands import Commands
from supervisor.refusal import Refused
from supervisor.settings.config import Loaded
from supervisor.settings.loading import load_for_production
from supervisor.settings.problems import Problem, report


def add(commands: Commands) -> None:
    """Put `run` beside the other commands."""
    run = commands.add_parser("run", help="serve with a configuration that is safe for production")
    run.add_argument("--config", type=Path, required=True, metavar="FILE", help="configuration (TOML)")
    run.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    loaded = load_for_production(options.config, os.environ)
    if loaded.settings is None:
        print(report(_everything(loaded)), end="", file=sys.stderr)
        return Exit.CONFIG
    from supervisor.launch import launch, prepare_run

    def reread() -> Loaded:
        return load_for_production(options.config, os.environ)

    return leave(launch(prepare_run(loaded.settings, reread, os.environ), os.environ, options.programs))


def _everything(loaded: Loaded) -> tuple[Problem, ...]:
    """Return the problems that `gateway check` finds, so that one refusal names all that prevent a start."""
    from supervisor.commands.examine.checking import check_configuration

    try:
        return check_configuration(loaded, os.environ).problems
    except Refused:
        return loaded.problems
