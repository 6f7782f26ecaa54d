"""Options with which a command names one gateway, and its settings."""

import argparse
import os
import sys
from pathlib import Path

from ipc.settings import Settings
from supervisor.commands.rotation import load_named
from supervisor.settings.problems import report

NOTHING_DONE = "nothing was done"


def add_gateway(parser: argparse.ArgumentParser) -> None:
    """Put `--config` and `--state-dir` among the options of a command."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration of the gateway (TOML)")
    parser.add_argument("--state-dir", type=Path, metavar="DIR", help="state directory of a dev gateway")


def named_settings(options: argparse.Namespace) -> Settings | None:
    """Settings of the gateway that these options name; None when they do not hold, which has been printed. Raises
    Refused."""
    loaded = load_named(options.config, options.state_dir, os.environ)
    if loaded.settings is None:
        print(report(loaded.problems, NOTHING_DONE), end="", file=sys.stderr)
    return loaded.settings
