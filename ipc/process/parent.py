"""Ties a process to its parent: when the parent dies, so does this process.

PDEATHSIG covers the death of the parent only from the call on, and it follows the *thread* that forked. So the
caller names the parent it expects, and leaves at once if that one is already gone.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ipc.process.exits import Exit

LEFT_TO_PARENT = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
"""Signals that reach a whole group or service (`systemctl kill`, a terminal): the supervisor alone handles them, and
ends its children itself."""

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def die_with_parent(expected_parent: int) -> None:
    """Arm PDEATHSIG=SIGKILL, then leave with Exit.ORPHANED if `expected_parent` is not our parent any more."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != expected_parent:
        sys.exit(Exit.ORPHANED)


@contextmanager
def signals_kept_from_children() -> Iterator[None]:
    """A child that is started within the block is ended by none of LEFT_TO_PARENT before it ignores them, which takes
    an interpreter a tenth of a second: they are blocked in it until `leave_signals_to_parent`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_PARENT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_parent() -> None:
    """Ignore LEFT_TO_PARENT, those too that came since this process was started."""
    for number in LEFT_TO_PARENT:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, LEFT_TO_PARENT)


def refuse_core_dumps() -> None:
    """Not dumpable: no core file, no ptrace by the same user, /proc/PID owned by root. SECURITY: secrets live here."""
    _prctl(_PR_SET_DUMPABLE, 0)


def allow_core_dumps() -> None:
    """Dumpable again, for a moment in which nothing secret is held."""
    _prctl(_PR_SET_DUMPABLE, 1)


def adopt_orphans() -> None:
    """Make this process the reaper of descendants whose own parent died."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
