"""`gateway check`: say everything that is wrong with a configuration and all that it names, start nothing."""

import argparse
import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ipc.process.exits import Exit
from supervisor.commands import Commands
from supervisor.commands.examine.checking import Checked, check_configuration
from supervisor.dev.policy import with_own_policy
from supervisor.dev.settings import DevOptions, load_dev
from supervisor.settings.checks.production import weakened
from supervisor.settings.config import Loaded
from supervisor.settings.in_force import PendingSettings, compare_with_running
from supervisor.settings.loading import load_for_production
from supervisor.settings.problems import as_json, as_warnings, report


def add(commands: Commands) -> None:
    """Put `check` beside the other commands."""
    check = commands.add_parser(
        "check",
        help="report all problems of a configuration without starting it",
        description="Read configuration, manifests, modules, policy, keys and secrets as a start would, and print "
        "every problem at once with file, line, field and mend. Nothing is started and nothing is written. Run it as "
        "the user that the gateway runs as.",
    )
    check.add_argument("--config", type=Path, metavar="FILE", help="configuration (TOML); required without --dev")
    check.add_argument("--dev", action="store_true", help="by the rules of `gateway dev`")
    check.add_argument("--state-dir", type=Path, metavar="DIR", help="with --dev: state directory of the dev gateway")
    check.add_argument(
        "--against-running", action="store_true",
        help="list settings that differ in the running gateway, and whether a reload or a restart applies them",
    )  # fmt: skip
    check.add_argument(
        "--connect", action="store_true",
        help="connect to its backends, too (OPA, proxy, Redis, PostgreSQL); exit code 69 if one is down",
    )  # fmt: skip
    check.add_argument("--json", action="store_true", help="print problems as JSON")
    check.set_defaults(run=_check, usage_error=check.error)


def _check(options: argparse.Namespace) -> int:
    if options.config is None and not options.dev:
        options.usage_error("the following arguments are required: --config (or --dev)")
    if options.state_dir is not None and not options.dev:
        options.usage_error("--state-dir goes with --dev")
    loaded = _load_dev(options) if options.dev else load_for_production(options.config, os.environ)
    waits = compare_with_running(loaded.settings) if options.against_running and loaded.settings else None
    checked = check_configuration(loaded, os.environ, connects=options.connect)
    good = _good(options, loaded, checked.actions, checked.policy_version)
    return show(checked, good, is_json=options.json, waits=waits)


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
    if loaded.document.is_default(("policy_dir",)):
        judged = with_own_policy(judged)
    return replace(loaded, judged=judged)


def show(checked: Checked, good: str, *, is_json: bool, waits: PendingSettings | None = None) -> int:
    """Print the outcome of a check; returns its exit code, which neither warnings nor what waits change."""
    if is_json:
        more = {} if waits is None else {"against_running": {"reload": waits.reload, "restart": waits.restart}}
        print(as_json((*checked.problems, *checked.unreached), checked.warnings, **more), end="")
    else:
        problems = (*checked.problems, *checked.unreached)
        said = report(problems) if problems else good + "\n"
        told = "" if waits is None else f"{waits}.\n"
        print(as_warnings(checked.warnings) + said + told, end="")
    if checked.problems:
        return Exit.CONFIG
    return Exit.UNAVAILABLE if checked.unreached else Exit.OK
