"""Options with which a command names one gateway, and its settings."""

import argparse
import os
import sys
from pathlib import Path

from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.commands.rotation import load_named
from supervisor.refusal import Refused
from supervisor.settings.in_force import compare_with_running
from supervisor.settings.problems import report

NOTHING_DONE = "nothing was done"
_FOLDERS = frozenset({"manifests_dir", "modules_dir", "policy_dir"})
"""Settings whose files a command reads or writes in the gateway's place."""


def add_gateway(parser: argparse.ArgumentParser) -> None:
    """Put `--config` and `--state-dir` among the options of a command."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration of the gateway (TOML)")
    parser.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help="state directory of a dev gateway, beside --config where it was started with one",
    )


def refuse_other_folders(options: argparse.Namespace, settings: Settings) -> None:
    """Raises Refused if a dev gateway that is named by its state directory alone runs with other folders than these
    settings have: it was started with a configuration, which the command line does not name."""
    if options.state_dir is None or options.config is not None:
        return
    try:
        pending = compare_with_running(settings)
    except Refused:  # none runs
        return
    other = sorted(_FOLDERS & {*pending.reload, *pending.restart})
    if other:
        sentence = f"the gateway that runs with {options.state_dir} has another {' and another '.join(other)}."
        raise Refused(Exit.USAGE, f"{sentence} Name its configuration, too: --config FILE.")


def named_settings(options: argparse.Namespace) -> Settings | None:
    """Settings of the gateway that these options name; None when they do not hold, which has been printed. Raises
    Refused."""
    loaded = load_named(options.config, options.state_dir, os.environ)
    if loaded.settings is None:
        print(report(loaded.problems, NOTHING_DONE), end="", file=sys.stderr)
    return loaded.settings
