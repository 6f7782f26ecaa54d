"""Common parts of the programs with which an operator accepts a state that refuses the start, or every call.

Settings come as JSON on standard input, the reason as `--reason TEXT`, the user who gives it as `--by USER`. The
supervisor runs them while it holds the state directory (supervisor/commands/inspect/rollback.py).
"""

import argparse
import sqlite3
import sys
from collections.abc import Callable

import msgspec

from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError
from ipc.settings import Settings
from notary.checkpoints import RolledBack
from notary.database import DatabaseGone
from notary.store.contract import StoreGone


class NothingToAccept(Exception):
    """The state is sound. The text says what is sound."""


def run(program: str, accept: Callable[[Settings, str, str], str], arguments: list[str] | None) -> int:
    """Accept and say what was done. Returns an exit code; its sentence goes to standard error."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description="Go on, because an operator says why.")
    parser.add_argument("--reason", required=True)
    parser.add_argument("--by", default="")
    given = parser.parse_args(arguments)
    return outcome(lambda settings: accept(settings, given.reason, given.by))


def outcome(perform: Callable[[Settings], str]) -> int:
    """Perform with the settings of standard input and print the result. Returns an exit code; its sentence goes to
    standard error."""
    try:
        print(perform(msgspec.json.decode(sys.stdin.buffer.read(), type=Settings)))
        return Exit.OK
    except NothingToAccept as error:
        told, code = f"{error}: there is nothing to accept.", Exit.CONFIG
    except PrivateFileError as error:
        told, code = str(error), Exit(error.exit_code)
    except RolledBack as error:
        told, code = str(error), Exit.ROLLED_BACK
    except (DatabaseGone, StoreGone, sqlite3.Error) as error:
        told, code = str(error), Exit.UNAVAILABLE
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename}: "
        told, code = f"{name}{error.strerror}.", Exit.UNAVAILABLE
    except ValueError as error:
        told, code = str(error), Exit.CONFIG
    print(told, file=sys.stderr)
    return code
