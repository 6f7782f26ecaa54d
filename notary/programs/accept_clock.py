"""`python -m notary.programs.accept_clock --reason TEXT --by USER`, settings as JSON on standard input: go on with a
clock that is behind the newest evidence, because an operator says why.

Behind `gateway ledger accept-clock`, which holds the state directory meanwhile. Evidence of the time ahead stays where
it is in the chain; the event of the acceptance follows it, and is the newest evidence from then on. In the same
transaction the epoch is raised, since leases of the time ahead would live until that time has come, and what waits for
that time (deliveries, quotas) waits no longer. Used proofs are kept until their time: they can't be used again then.
"""

import sys

from ipc.evidence.events import CLOCK_ACCEPTED, AuditEvent
from ipc.process.clock import STEP_TOLERANCE_SECONDS, SystemClock, iso
from ipc.settings import Settings
from ipc.texts.foreign_texts import clean_reason
from ipc.texts.identifiers import new
from notary.checkpoints import Checkpoints
from notary.ledger import outbox
from notary.opening import open_state
from notary.programs.accepting import NothingToAccept, run
from notary.state import NotaryState
from notary.store import cap_rows, quotas
from notary.units.transaction import Transaction


def accept(settings: Settings, reason: str, by: str) -> str:
    """Do it; a sentence that tells what was done.

    Raises NothingToAccept, RolledBack, DatabaseGone, StoreGone, KeyFileError, OSError, ValueError.
    """
    state, _ = open_state(settings, SystemClock(0.0))
    try:
        now = state.clock.now()
        if state.newest - STEP_TOLERANCE_SECONDS <= now:
            raise NothingToAccept("the clock is not behind the newest evidence")
        _accept(state, reason, by)
        Checkpoints(state).make()
    finally:
        state.database.close()
    return (
        f"Accepted: the newest evidence is of {iso(state.newest)}, and the clock says {iso(now)}. The log goes on from "
        "there; all earlier leases have ended."
    )


def _accept(state: NotaryState, reason: str, by: str) -> None:
    with state.database.unit() as connection:
        unit = Transaction(state, connection)
        previous, current = unit.renew_store(0)
        quotas.bring_back(connection, unit.now)
        cap_rows.bring_back(connection, unit.now)
        outbox.bring_back(connection, int(unit.now * 1000))
        change = {"from": iso(state.newest), "to": iso(unit.now)} | ({"by": by} if by else {})
        unit.append(
            AuditEvent(event_type=CLOCK_ACCEPTED, trace_id=new("trc_"), principal="gateway", decision="allow"),
            reason=clean_reason(reason), change=change | {"previous_epoch": previous, "current_epoch": current},
        )  # fmt: skip
        unit.settle()
        unit.finish([])
    unit.commit()


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py; the sentence that explains it goes to standard
    error."""
    return run("notary.programs.accept_clock", accept, arguments)


if __name__ == "__main__":
    sys.exit(main())
