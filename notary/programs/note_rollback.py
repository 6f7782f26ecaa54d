"""`python -m notary.programs.note_rollback`, settings as JSON on standard input: write the event of an action's
rollback.

Behind `gateway actions rollback` where no gateway runs; the command holds the state directory meanwhile. A running
gateway writes this event itself, with the reload that puts the manifest in force.
"""

import argparse
import sys

from ipc.evidence.events import ACTION_ROLLED_BACK, AuditEvent
from ipc.process.clock import SystemClock
from ipc.settings import Settings
from ipc.texts.identifiers import new
from notary.checkpoints import Checkpoints
from notary.opening import open_state
from notary.programs.accepting import outcome
from notary.units.transaction import Transaction


def note(settings: Settings, told: argparse.Namespace) -> str:
    """Write it; the trace id of the event.

    Raises RolledBack, DatabaseGone, StoreGone, KeyFileError, OSError, ValueError.
    """
    state, _ = open_state(settings, SystemClock(0.0))
    try:
        with state.database.unit() as connection:
            unit = Transaction(state, connection)
            event = AuditEvent(
                event_type=ACTION_ROLLED_BACK, trace_id=new("trc_"), principal="command", decision="allow",
                action_id=told.action, action_version=told.version,
            )  # fmt: skip
            unit.append(event, change={"from": told.replaced, "to": told.digest, "by": told.by})
            unit.settle()
            unit.finish([])
        unit.commit()
        Checkpoints(state).make()
    finally:
        state.database.close()
    return str(event.trace_id)


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py."""
    parser = argparse.ArgumentParser(
        prog="python -m notary.programs.note_rollback", description="Write the event of a rollback."
    )
    for name in ("action", "version", "digest", "by"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--replaced")
    told = parser.parse_args(arguments)
    return outcome(lambda settings: note(settings, told))


if __name__ == "__main__":
    sys.exit(main())
