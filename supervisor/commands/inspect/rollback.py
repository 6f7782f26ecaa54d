"""`gateway ledger accept-rollback` and `accept-clock`: go on from a ledger that a start refuses, or with a clock that
is behind the newest evidence.

The supervisor reads neither ledger nor key: a process of its own does (`notary.programs.accept_rollback`,
`notary.programs.accept_clock`), while this one holds the state directory, so that no gateway runs meanwhile.
"""

import os
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.commands.rotation import with_key_paths
from supervisor.dev.keys import MAKE_SECONDS, run_key_program
from supervisor.refusal import Refused
from supervisor.state_dir import hold_state_dir

_KNOWN = frozenset({Exit.CONFIG, Exit.NO_PERMISSION, Exit.UNAVAILABLE, Exit.LOCKED, Exit.ROLLED_BACK})


def accept(program: str, settings: Settings, reason: str) -> str:
    """Run `notary.programs.accept_rollback` or `notary.programs.accept_clock`; its sentence. Raises Refused."""
    if not reason.strip():
        raise Refused(Exit.USAGE, "--reason: say why; an auditor who reads the log in a year will ask.")
    return run_alone(program, settings, ["--reason", reason, "--by", local_user()])


def run_alone(program: str, settings: Settings, arguments: list[str], seconds: float = MAKE_SECONDS) -> str:
    """Run a program that opens the ledger while no gateway runs; its sentence. Raises Refused."""
    with ExitStack() as cleanup:
        hold_state_dir(Path(settings.state_dir), cleanup, is_mended=False)
        return run_for_ledger(program, settings, arguments, seconds)


def run_for_ledger(program: str, settings: Settings, arguments: list[str], seconds: float) -> str:
    """Run a program that opens the ledger; what it prints. Raises Refused."""
    given = msgspec.json.encode(with_key_paths(settings)).decode()
    done = run_key_program(program, arguments, "the ledger could not be opened", given, seconds=seconds)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Refused(Exit(done.returncode) if done.returncode in _KNOWN else Exit.FAILED, why)
    return done.stdout


def local_user() -> str:
    """The user of this host who runs the command, also by way of sudo."""
    given = os.environ.get("SUDO_UID", "")
    return f"uid:{given if given.isascii() and given.isdigit() else os.getuid()}"
