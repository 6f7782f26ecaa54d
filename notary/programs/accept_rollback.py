"""`python -m notary.programs.accept_rollback --reason TEXT`, settings as JSON on standard input: go on from a ledger
that does not continue its last checkpoint, because an operator says why.

Behind `gateway ledger accept-rollback`, which holds the state directory meanwhile. Writes an event, raises the epoch
above all epochs of the lost time, keeps the old file of checkpoints beside the new one, and signs the first checkpoint
of the present tree. After a kill at any point, the next start refuses again, or finds it done.
"""

import sys
from pathlib import Path

from ipc.evidence.events import ROLLBACK_ACCEPTED, AuditEvent
from ipc.process.private_files import sync_folder
from ipc.settings import Settings
from ipc.texts.foreign_texts import clean_reason
from ipc.texts.identifiers import new
from notary import checkpoint_file
from notary.checkpoints import BACKUP, Checkpoints, RolledBack
from notary.database import DatabaseGone
from notary.ledger import witnesses
from notary.opening import open_state
from notary.programs.accepting import NothingToAccept, run
from notary.tree.tiles import Tree
from notary.units.transaction import Transaction
from notary.upkeep import announcing


def accept(settings: Settings, reason: str, by: str = "") -> str:
    """Do it; a sentence that tells what was.

    Raises NothingToAccept, DatabaseGone, KeyFileError, OSError, ValueError.
    """
    try:
        open_state(settings)[0].database.close()
    except RolledBack as error:
        told = str(error).split(". Put the ledger")[0]
    else:
        raise NothingToAccept("the ledger continues its last checkpoint")
    state, _ = open_state(settings, is_accepted=True)
    with state.database.unit() as connection:
        unit = Transaction(state, connection)
        tree = Tree(connection)
        _tell(unit, f"{reason} ({told})", tree.size, by)
        # They committed to another tree.
        connection.execute("DELETE FROM checkpoints")
        connection.execute("DELETE FROM meta WHERE key IN (?, ?, ?)", (witnesses.META, announcing.META, BACKUP))
        unit.finish([])
    unit.commit()
    _set_aside(Path(settings.state_dir) / checkpoint_file.FILE_NAME, state.clock.iso())
    made = Checkpoints(state).make()
    state.database.close()
    if made is None:
        raise DatabaseGone("the first checkpoint could not be signed; the next start tries again")
    return f"Accepted: {told}. The log goes on with {made.size} leaves; every lease of before has ended."


def _tell(unit: Transaction, reason: str, size: int, by: str) -> None:
    # How often the epoch was raised in the lost time is unknown; it can't have been once a second since 1970.
    previous, current = unit.renew_store(int(unit.now))
    event = AuditEvent(event_type=ROLLBACK_ACCEPTED, trace_id=new("trc_"), principal="gateway", decision="allow")
    change = {"previous_epoch": previous, "current_epoch": current, "size": size} | ({"by": by} if by else {})
    unit.append(event, reason=clean_reason(reason), change=change)


def _set_aside(path: Path, now: str) -> None:
    if path.exists():
        path.rename(path.with_name(f"{path.name}.until-{now}"))
        sync_folder(path.parent)


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py; the sentence that explains it goes to standard
    error."""
    return run("notary.programs.accept_rollback", accept, arguments)


if __name__ == "__main__":
    sys.exit(main())
