"""The broker process: `python -m broker.main --control-fd N --parent PID`, started by the supervisor.

Started once an action needs it. Builds its walls, hears the supervisor, and answers fronts (broker/process.py). Ends
with an exit code of ipc/process/exits.py; signals to the whole service are the supervisor's business and ignored here.
"""

import argparse
import os
import socket

from setproctitle import setproctitle

from ipc.process.parent import die_with_parent, leave_signals_to_parent, refuse_core_dumps
from ipc.process.process_speed import hold_collector, leave


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="broker.main", allow_abbrev=False)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    arguments = parser.parse_args()
    die_with_parent(arguments.parent)
    # SECURITY: client secrets and tokens live here.
    refuse_core_dumps()
    leave_signals_to_parent()
    hold_collector()
    setproctitle("gateway: broker")
    # Only now: what it is made of takes a while, and must not outlive its parent meanwhile.
    from broker.process import run

    os.set_inheritable(arguments.control_fd, False)
    leave(run(socket.socket(fileno=arguments.control_fd)))


if __name__ == "__main__":
    main()
