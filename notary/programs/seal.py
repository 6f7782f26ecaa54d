"""`python -m notary.programs.seal --before TIME --out DIR`, settings as JSON on standard input: move the oldest part of
a ledger to a file of its own.

Behind `gateway ledger seal`. While no gateway runs, it does all of it: the segment is durable and was read back before
one transaction writes the event `LedgerSealed` and moves the ledger's beginning; then rows are deleted, in slices. With
`--copy` it writes the segment alone, and prints what the running notary must be told (`CopiedSegment`), which does the
rest. After a kill at any point the ledger has all rows, or the segment and the event.
"""

import argparse
import os
import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from ipc.messages.sealing import CopiedSegment
from ipc.process.clock import SystemClock, TimeSource, parse_iso
from ipc.process.parent import die_with_parent
from ipc.settings import Settings
from notary.backends.sqlite import connect
from notary.checkpoints import Checkpoints
from notary.ledger.cut import read_cleared
from notary.opening import open_state
from notary.operations.cutting import LEAST_AGE_SECONDS, TOO_YOUNG, CutOff
from notary.operations.table import PERFORMERS
from notary.programs.accepting import outcome
from notary.reading.audit import CannotCheck
from notary.reading.source import NotReadable
from notary.sealing.choosing import NothingToSeal
from notary.sealing.clearing import clear_all, clear_slice
from notary.sealing.copying import CopiedRange, copy
from notary.sealing.segment import NotSealed
from notary.state import NotaryState
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task

_NO_SEGMENT = (NothingToSeal, NotSealed, CannotCheck, NotReadable)


def seal(settings: Settings, before: float, folder: Path, by: str = "", clock: TimeSource | None = None) -> str:
    """Do all of it; a sentence that tells what was done. Raises ValueError, DatabaseGone, KeyFileError, OSError,
    sqlite3.Error."""
    state, _ = open_state(settings, clock)
    try:
        if _clear(state):  # of a sealing that did not come to its end
            _shrink(state)
        _check_age(before, state.clock)
        copied = copy(settings, before, folder, by)
        _cut_off(state, copied)
        _clear(state)
        Checkpoints(state).make()
        _shrink(state)
    except _NO_SEGMENT as error:
        raise ValueError(f"{error}.") from None
    finally:
        state.database.close()
    return copied.told


def copy_only(settings: Settings, before: float, folder: Path, by: str) -> str:
    """Write the segment while a gateway runs; CopiedSegment as JSON. Raises ValueError, KeyFileError, OSError,
    sqlite3.Error."""
    try:
        _check_age(before, SystemClock(0.0))
        copied = copy(settings, before, folder, by)
    except _NO_SEGMENT as error:
        raise ValueError(f"{error}.") from None
    sealed = msgspec.json.encode(copied.sealed).decode()
    return msgspec.json.encode(CopiedSegment(str(copied.segment.path), sealed, copied.told)).decode()


def _check_age(before: float, clock: TimeSource) -> None:
    if before > clock.now() - LEAST_AGE_SECONDS:
        raise NotSealed(f"--before: {TOO_YOUNG}")


def _cut_off(state: NotaryState, copied: CopiedRange) -> None:
    """Cut the ledger. Raises NotSealed; a segment that is refused is removed, since the ledger has all of it."""
    done = TransactionRunner(state, PERFORMERS).perform((Task("", 0, CutOff(copied.sealed)),))[0]
    if done.problem is None:
        return
    if done.problem == "refused":
        copied.segment.path.unlink()
    raise NotSealed(done.cause or done.problem)


def _clear(state: NotaryState) -> bool:
    """Delete the rows of segments; True if there were any."""
    database = state.database
    with database.unit(writes=False) as connection:
        if read_cleared(connection) is None:
            return False

    def perform(rows: int) -> int:
        with database.unit(is_durable=False) as connection:
            return clear_slice(connection, rows, is_file=not database.is_shared).left

    clear_all(perform, time.monotonic)
    return True


def _shrink(state: NotaryState) -> None:
    """Give the free pages of a file back to the disk; without room for a copy they stay, and are used again."""
    if not state.database.is_shared:
        file = Path(state.settings.ledger_file)
        with closing(connect(file, writes=True)) as ledger, suppress(sqlite3.OperationalError):
            ledger.execute("VACUUM")
            ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py; the sentence that explains it goes to standard
    error."""
    parser = argparse.ArgumentParser(
        prog="python -m notary.programs.seal", description="Move the oldest part of a ledger."
    )
    parser.add_argument("--before", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--by", default="")
    parser.add_argument("--copy", action="store_true")
    parser.add_argument("--parent", type=int, help="the command, which has the locks: this program ends with it")
    given = parser.parse_args(arguments)
    if given.parent is not None:
        die_with_parent(given.parent)
    os.umask(0o077)
    perform = copy_only if given.copy else seal
    return outcome(lambda settings: perform(settings, parse_iso(given.before), given.out.absolute(), given.by))


if __name__ == "__main__":
    sys.exit(main())
