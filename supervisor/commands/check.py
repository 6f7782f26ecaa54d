"""`gateway check`: say everything that is wrong with a configuration and all that it names, start nothing."""

import argparse
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from ipc.exits import Exit
from supervisor import dev_policy
from supervisor.checking import check_configuration
from supervisor.commands import Commands
from supervisor.config import Loaded
from supervisor.dev import DevOptions, load_dev
from supervisor.loading import load_for_production
from supervisor.problems import Problem, as_json, report
from supervisor.production import weakened


def add(commands: Commands) -> None:
    """Put `check` beside the other commands."""
    check = commands.add_parser(
        "check",
        help="say everything that is wrong with a configuration, start nothing",
        description="Read configuration, manifests, modules, policy, keys and secrets as a start would, and print "
        "every problem at once with file, line, field and mend. Nothing is started and nothing is written. Run it as "
        "the user that the gateway runs as.",
    )
    check.add_argument("--config", type=Path, metavar="FILE", help="configuration (TOML); required without --dev")
    check.add_argument("--dev", action="store_true", help="by the rules of `gateway dev`")
    check.add_argument("--state-dir", type=Path, metavar="DIR", help="with --dev: state directory of the dev gateway")
    check.add_argument("--json", action="store_true", help="print problems as JSON")
    check.set_defaults(run=_check, usage_error=check.error)


def _check(options: argparse.Namespace) -> int:
    if options.config is None and not options.dev:
        options.usage_error("the following arguments are required: --config (or --dev)")
    if options.state_dir is not None and not options.dev:
        options.usage_error("--state-dir goes with --dev")
    loaded = _load_dev(options) if options.dev else load_for_production(options.config, os.environ)
    checked = check_configuration(loaded, os.environ)
    return show(checked.problems, _good(options, loaded, checked.actions, checked.policy_version), is_json=options.json)


def _good(options: argparse.Namespace, loaded: Loaded, actions: int, version: str) -> str:
    names = weakened(loaded.settings) if loaded.settings else ()
    what = options.config or "gateway dev"
    counted = f"{actions} action{'s' * (actions != 1)}, policy version {version}"
    return f"{what}: no problems, {counted}." + (f" Weakened: {', '.join(names)}." if names else "")


def _load_dev(options: argparse.Namespace) -> Loaded:
    loaded = load_dev(DevOptions(state_dir=options.state_dir, config=options.config), os.environ)
    settings = loaded.settings or loaded.judged
    if settings is None:
        return loaded
    judged = msgspec.structs.replace(settings, dev_mode=True)
    own = Path(judged.state_dir) / dev_policy.FOLDER
    # Once it has been started, a dev gateway that was not told of a policy has one in its state directory.
    if loaded.document.is_default(("policy_dir",)) and own.is_dir():
        judged = msgspec.structs.replace(judged, policy_dir=str(own))
    return replace(loaded, judged=judged)


def show(problems: Iterable[Problem], good: str, *, is_json: bool) -> int:
    """Print the outcome of a check; returns its exit code."""
    listed = tuple(problems)
    if is_json:
        print(as_json(listed), end="")
    else:
        print(report(listed) if listed else good + "\n", end="")
    return Exit.CONFIG if listed else Exit.OK
