"""The front process: `python -m frontend.main --control-fd N --parent PID`, started by the supervisor.

Ties itself to its parent before anything else, then becomes frontend/front.py. Ends with an exit code of
ipc/process/exits.py; signals to the whole service are the supervisor's business and ignored here.
"""

import argparse

from ipc.process.parent import die_with_parent, leave_signals_to_parent, refuse_core_dumps
from ipc.process.process_speed import hold_collector, leave, yield_soon


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="frontend.main", allow_abbrev=False)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    arguments = parser.parse_args()
    die_with_parent(arguments.parent)
    refuse_core_dumps()
    leave_signals_to_parent()
    hold_collector()
    yield_soon()
    # Only now: all that a front is made of takes a while, and must not outlive its parent meanwhile.
    from frontend.front import run

    leave(run(arguments.control_fd))


if __name__ == "__main__":
    main()
