"""Forking from the template: a child that owns nothing it was not given, tied to its parent, waited for by handle.

Guarantees that a child keeps no descriptor but those named, no shared event queue, and dies with the template, which
has no signal handlers to leave behind. The template is single-threaded, so a fork copies no lock that is held.
"""

import os
import select
import signal
from collections.abc import Collection
from typing import NoReturn

import msgspec

from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent, refuse_core_dumps
from workers.log import write_failure

_HIGHEST_DESCRIPTOR = 2**31 - 1
_STANDARD = 3


class Forked(msgspec.Struct, frozen=True):
    """A child process. `handle` is a pidfd: readable once the child has ended, never another process."""

    pid: int
    handle: int

    def kill(self) -> None:
        """SIGKILL; nothing happens when it has ended already."""
        try:
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        except ProcessLookupError:
            return

    def has_ended(self) -> bool:
        """True when `reap` will not wait."""
        waiting = select.poll()
        waiting.register(self.handle, select.POLLIN)
        return bool(waiting.poll(0))

    def reap(self) -> int:
        """Collect the child and give its handle back. Returns its exit code, or minus a signal."""
        _, raw = os.waitpid(self.pid, 0)
        os.close(self.handle)
        return os.waitstatus_to_exitcode(raw)


def fork() -> Forked | None:
    """A new child: its Forked in the parent, None in the child, which must call `settle` first. Raises OSError."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent(parent)
        except BaseException as error:
            leave(error)
        return None
    try:
        return Forked(pid, os.pidfd_open(pid))
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def settle(keep: Collection[int]) -> None:
    """In a fresh child: not dumpable, no descriptor but `keep` and standard error.

    SECURITY: the template's control channel and the channels of other workers are closed here, before anything that a
    stranger wrote is near. `random` reseeds itself in a fork; our code does not draw from it.
    """
    refuse_core_dumps()
    start = _STANDARD
    for kept in sorted(number for number in keep if number >= _STANDARD):
        os.closerange(start, kept)
        start = kept + 1
    os.closerange(start, _HIGHEST_DESCRIPTOR)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


def leave(reason: int | BaseException) -> NoReturn:
    """End a forked child at once: nothing of the template that it inherited is cleaned up twice."""
    code = int(Exit.FAILED)
    if isinstance(reason, SystemExit):
        code = reason.code if isinstance(reason.code, int) else code
    elif isinstance(reason, BaseException):
        write_failure("process failed", reason)
    else:
        code = reason
    os._exit(code)
