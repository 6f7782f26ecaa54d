"""The console script `gateway`: command lines in, one sentence or a list of problems out, exit codes of
`ipc.process.exits`.

The commands themselves are in supervisor/commands/.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from ipc.process.exits import Exit
from ipc.process.output import flushed, tell
from ipc.process.stderr import let_go_of_stderr
from ipc.settings import Settings
from supervisor.commands import bridge, completion, console, dev, edge, run, witness
from supervisor.commands.create import importing, init, keys, new
from supervisor.commands.examine import (
    check,
    doctor,
    policy,
    schema,
    trying_actions,  # fmt: skip
)
from supervisor.commands.inspect import actions, backup, ledger, logs, running
from supervisor.commands.launcher import check_launcher, settle
from supervisor.programs import Programs
from supervisor.refusal import Refused

_EXITS = """exit codes:
  0 stopped as asked, or nothing is wrong · 2 the command line does not parse · 8 a ledger does not verify
  9 the ledger does not continue its last checkpoint · 16 its files were replaced while it ran
  69 a port or a dependency is not available, or no gateway runs · 75 another gateway holds the state directory
  77 a folder can't be used · 78 the configuration, a policy or a question is refused
  137 calls were cut by the hard deadline · 1 a test failed, a policy gives no decision, the running gateway is
  not ready or has refused a reload, or an unexpected error; the log says what"""

_GROUPS = (
    init,
    new,
    importing,
    run,
    dev,
    running,
    logs,
    check,
    doctor,
    policy,
    schema,
    actions,
    trying_actions,
    keys,
    ledger,
    backup,
    witness,
    console,
    edge,
    bridge,
    completion,
)
"""In the order in which `gateway --help` shows them."""


def main(arguments: Sequence[str] | None = None, programs: Programs | None = None) -> int:
    """Run one command; return its exit code. `programs` replaces the children's programs, for tests."""
    settle()
    try:
        code = _outcome(sys.argv[1:] if arguments is None else arguments, programs or Programs())
    except SystemExit as end:  # argparse has said why
        code = end.code if isinstance(end.code, int) else Exit.OK
    except KeyboardInterrupt:
        # Before signals are received in the event loop; nothing has been taken yet.
        code = Exit.KILLED
    code = flushed(code)
    let_go_of_stderr()
    return code


def _outcome(arguments: Sequence[str], programs: Programs) -> int:
    try:
        options = command_parser().parse_args(arguments)
        check_launcher(arguments, os.environ)
        options.programs = programs
        return int(options.run(options))
    except Refused as refused:
        tell(refused.sentence)
        return refused.code
    except BrokenPipeError:
        return Exit.FAILED  # the reader of standard output is gone
    except OSError as error:
        tell(f"{error.filename or 'failed'}: {error.strerror or error}.")
        return Exit.FAILED


def command_parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    parser = argparse.ArgumentParser(
        prog="gateway",
        description="Action enforcement gateway: stands between AI agents and their side effects.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gateway {version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for group in _GROUPS:
        group.add(commands)
    return parser


def version() -> str:
    """The version of this gateway."""
    return Settings(state_dir="", public_base_url="").version


if __name__ == "__main__":
    sys.exit(main())
