"""The first steps of a process that the supervisor starts with `--control-fd N --parent PID`.

Guarantees that the process ends with its parent, leaves no core dump, ignores the signals to the whole service, and
hands its control socket to no program.
"""

import argparse
import os
import socket

from setproctitle import setproctitle

from ipc.process.parent import die_with_parent, leave_signals_to_parent, refuse_core_dumps
from ipc.process.process_speed import hold_collector


def become_child(program: str, title: str) -> socket.socket:
    """Become the process of this `title`; returns the socket whose other end is the supervisor's.

    SECURITY: called before a secret is read, since a core dump would hold it.
    """
    parser = argparse.ArgumentParser(prog=program, allow_abbrev=False)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    arguments = parser.parse_args()
    die_with_parent(arguments.parent)
    refuse_core_dumps()
    leave_signals_to_parent()
    hold_collector()
    setproctitle(f"gateway: {title}")
    return inherited(arguments.control_fd)


def inherited(number: int) -> socket.socket:
    """The channel that this process was started with, not inheritable any further."""
    os.set_inheritable(number, False)
    return socket.socket(fileno=number)
