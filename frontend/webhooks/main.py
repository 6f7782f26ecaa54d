"""The deliverer process: `python -m frontend.webhooks.main --control-fd N --parent PID`, started by the supervisor.

Started only where an endpoint of webhooks is configured and not disabled. Builds its walls before it opens any secret,
hears the supervisor, and sends (frontend/webhooks/deliverer.py). Ends with an exit code of ipc/process/exits.py.
"""

from ipc.process.child import become_child
from ipc.process.process_speed import leave


def main() -> None:
    """Entry point."""
    control = become_child("frontend.webhooks.main", "deliverer")
    # Only now: what it is made of takes a while, and must not outlive its parent meanwhile.
    from frontend.webhooks.process import run

    leave(run(control))


if __name__ == "__main__":
    main()
