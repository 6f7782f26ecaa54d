"""The front process: `python -m frontend.main --control-fd N --parent PID`, started by the supervisor.

Ties itself to its parent before anything else, then becomes frontend/front.py. Ends with an exit code of
ipc/process/exits.py; signals to the whole service are the supervisor's business and ignored here.
"""

from ipc.process.child import become_child
from ipc.process.process_speed import leave, yield_soon


def main() -> None:
    """Entry point."""
    control = become_child("frontend.main", "spare front")  # perhaps it is kept ready for another one's end
    yield_soon()
    # Only now: all that a front is made of takes a while, and must not outlive its parent meanwhile.
    from frontend.front import run

    leave(run(control))


if __name__ == "__main__":
    main()
