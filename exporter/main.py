"""The exporter process: `python -m exporter.main --control-fd N --parent PID`, started by the supervisor where a
collector is configured.

Builds its walls, hears the supervisor, and sends what fronts give it (exporter/process.py). Ends with an exit code of
ipc/process/exits.py.
"""

from ipc.process.child import become_child
from ipc.process.process_speed import leave


def main() -> None:
    """Entry point."""
    control = become_child("exporter.main", "exporter")
    # Only now: what it is made of takes a while, and must not outlive its parent meanwhile.
    from exporter.process import run

    leave(run(control))


if __name__ == "__main__":
    main()
