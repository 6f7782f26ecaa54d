"""The broker process: `python -m broker.main --control-fd N --parent PID`, started by the supervisor.

Started once an action needs it. Builds its walls, hears the supervisor, and answers fronts (broker/process.py). Ends
with an exit code of ipc/process/exits.py.
"""

from ipc.process.child import become_child
from ipc.process.process_speed import leave


def main() -> None:
    """Entry point."""
    control = become_child("broker.main", "broker")
    # Only now: what it is made of takes a while, and must not outlive its parent meanwhile.
    from broker.process import run

    leave(run(control))


if __name__ == "__main__":
    main()
