"""`gateway policy`: test, check and explain a policy outside the gateway, by the gateway's own processes."""

import argparse
import os
import socket
import sys
from pathlib import Path

from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.children.helpers import Helpers
from supervisor.commands import Commands
from supervisor.commands.examine import explaining
from supervisor.commands.examine.check import show
from supervisor.commands.examine.checking import check_policy
from supervisor.refusal import Refused

TEST_SECONDS = 3600.0
"""For all tests of a folder together; each has a second of its own."""
EXPLAIN_SECONDS = 120.0


def add(commands: Commands) -> None:
    """Put `policy` beside the other commands."""
    policy = commands.add_parser("policy", help="test, check or explain a policy without the service")
    kinds = policy.add_subparsers(title="commands", required=True, metavar="COMMAND")

    test = kinds.add_parser("test", help="run the rules named test_… of *_test.rego")
    _add_folder(test)
    test.set_defaults(run=_test)

    check = kinds.add_parser("check", help="load a policy as the gateway would, and report its problems")
    _add_folder(check)
    check.add_argument(
        "--manifests", type=Path, metavar="DIR", help="warn of values that no action of these manifests offers"
    )
    check.set_defaults(run=_check)

    explain = kinds.add_parser("explain", help="show decision, rule and trail for one question")
    explaining.add_options(explain, _default_folder())
    explain.set_defaults(run=_explain)
    for command in (test, check, explain):
        command.add_argument("--json", action="store_true", help="print JSON")


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=Path, nargs="?", metavar="DIR", help=f"policy folder (default {_default_folder()})"
    )


def _default_folder() -> str:
    return Settings(state_dir="", public_base_url="").policy_dir


def _whole(folder: Path | None) -> str:
    return str((folder or Path(_default_folder())).absolute())


def _test(options: argparse.Namespace) -> int:
    return _consult(["test", "--folder", _whole(options.folder)], options, TEST_SECONDS)


def _check(options: argparse.Namespace) -> int:
    folder = _whole(options.folder)
    manifests = None if options.manifests is None else str(options.manifests.absolute())
    report = check_policy(folder, os.environ, manifests)
    remembered = "Decisions are remembered."
    if report.policy_not_remembered is not None:
        remembered = f"Decisions are not remembered: {report.policy_not_remembered}."
    good = f"{folder}: no problems, policy version {report.policy_version}. {remembered}"
    return show(report, good, is_json=options.json)


def _explain(options: argparse.Namespace) -> int:
    with explaining.question(options, os.environ) as question:
        if question is None:
            return Exit.CONFIG
        folder = question.folder or _whole(options.policy)
        return _consult(["explain", "--folder", folder, *question.arguments], options, EXPLAIN_SECONDS, question.fds)


def _consult(
    arguments: list[str], options: argparse.Namespace, seconds: float, fds: tuple[int, ...] = ()
) -> int:  # fmt: skip
    """Run the front's part beside an examiner, and pass its output on. Return its exit code."""
    more = ["--json"] if options.json else []
    fronts, examiners = socket.socketpair()
    sys.stdout.flush()
    with fronts, examiners, Helpers(os.environ, seconds) as helpers:
        helpers.start("workers.examiner", "--channel-fd", str(examiners.fileno()), fds=(examiners.fileno(),))
        examiners.close()
        front = helpers.start(
            "frontend.policy.tools.command", "--channel-fd", str(fronts.fileno()), *arguments, *more,
            fds=(fronts.fileno(), *fds), stdout=sys.stdout.fileno(),
        )  # fmt: skip
        fronts.close()
        code = helpers.wait(front)
    if code < 0:
        raise Refused(Exit.FAILED, f"the command ended with signal {-code}.")
    return code
