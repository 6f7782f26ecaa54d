"""What a notary opens before it serves: the database, brought to this version, and the keys."""

from pathlib import Path

from ipc.clock import Clock, SystemClock
from ipc.settings import Settings
from notary.backends.bringing import bring_store_over
from notary.backends.sqlite import Database
from notary.ledger import schema
from notary.ledger.outbox import Backlog
from notary.reading.queries import newest_time
from notary.signing.rotation import Signers
from notary.state import State
from notary.store import proofs
from notary.unit import Remembered, count_backlog, remembered


def open_state(settings: Settings, clock: Clock | None = None) -> tuple[State, Remembered]:
    """Open everything. Raises DatabaseGone, KeyFileError, ValueError with a sentence for people.

    `clock` None: the machine's, held against the newest evidence.
    """
    state_dir = Path(settings.state_dir)
    database = Database(Path(settings.ledger_file), schema.prepare)
    database.open()
    bring_store_over(database, state_dir / "store.sqlite3")
    with database.unit(writes=False) as connection:
        newest = newest_time(connection) or 0.0
        answers = remembered(connection)
        epoch = proofs.epoch(connection)
    backlog = Backlog(settings.webhooks, settings.version)
    state = State(settings, clock or SystemClock(newest), database, Signers.open(settings), backlog, epoch=epoch)
    count_backlog(state)
    return state, answers
