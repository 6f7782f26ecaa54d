"""Runs a command and holds it to leave no process behind: `python left_behind.py SECONDS COMMAND ...`.

A process that the command has started becomes a child of this process when the command ends, so that none is missed.
If this process is killed, the command is too. Ends as the command did; with 70 and a line on stderr when one of them
is still there SECONDS later. Imports nothing of the repository: it is one more start of an interpreter for each
command.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LEFT_BEHIND = 70


def main(seconds: float, command: list[str]) -> int:
    """The command's exit code, 128 and the signal's number, or LEFT_BEHIND."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    code = subprocess.call(command, preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code if code >= 0 else 128 - code
        if pid == 0:
            time.sleep(0.01)
    print(f"{command[0]} left processes behind", file=sys.stderr)
    return LEFT_BEHIND


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
