"""What a notary opens before it serves: the database, brought to this version, and the keys."""

from pathlib import Path
from typing import TYPE_CHECKING

from ipc.clock import Clock, SystemClock
from ipc.settings import Settings
from notary.backends.bringing import bring_store_over
from notary.backends.sqlite import Database
from notary.checkpoints import check_continued
from notary.ledger import journal, schema, witnesses
from notary.ledger.outbox import Backlog
from notary.ledger.settling import Unsettled, settle_all
from notary.ledger.witnesses import Witnesses
from notary.reading.queries import newest_time
from notary.signing.rotation import Signers
from notary.state import DEFAULT_LIMITS, Limits, State
from notary.store import proofs
from notary.store.marker import read_marker
from notary.tree import tiles
from notary.unit import Remembered
from notary.units import count_backlog, remembered

if TYPE_CHECKING:
    from notary.backends.redis.client import Place


def open_state(
    settings: Settings,
    clock: Clock | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    is_accepted: bool = False,
    place: "Place | None" = None,
) -> tuple[State, Remembered]:
    """Open everything. Raises DatabaseGone, StoreGone, RolledBack, KeyFileError, OSError, ValueError with a sentence
    for people.

    `clock` None: the machine's, held against the newest evidence. `is_accepted`: the last checkpoint need not be
    continued. `place`: where the Redis of the store is, if its name was looked up already.
    """
    state_dir = Path(settings.state_dir)
    database = Database(Path(settings.ledger_file), schema.prepare, limits.database)
    database.open()
    bring_store_over(database, state_dir / "store.sqlite3")
    with database.unit(writes=False) as connection:
        answers = remembered(connection)
        unsettled = Unsettled(journal.read(connection))
    last = unsettled.number
    settle_all(database, unsettled)
    signers = Signers.open(settings)
    with database.unit(writes=False) as connection:
        newest = newest_time(connection) or 0.0
        checkpoint = None if is_accepted else check_continued(connection, state_dir, signers)
        epoch = proofs.epoch(connection)
        leaves = tiles.size(connection)
        known = Witnesses(settings.evidence.witnesses, witnesses.read(connection))
    backlog = Backlog(settings.webhooks, settings.version)
    clock = clock or SystemClock(newest)
    state = State(
        settings, clock, database, signers, backlog, known, limits, leaves=leaves, checkpoint=checkpoint, epoch=epoch,
        unsettled=unsettled,
    )  # fmt: skip
    if settings.store.redis_url is None:
        with database.unit(writes=False) as connection:
            state.has_other_store = read_marker(connection) is not None
    else:
        _open_redis(state, place, last, is_new=newest == 0.0)
    count_backlog(state)
    return state, answers


def _open_redis(state: State, place: "Place | None", last: int, *, is_new: bool) -> None:
    from notary.backends.redis.client import Place
    from notary.backends.redis.opening import open_stores

    place = place or Place(state.settings.store)
    with state.database.unit() as connection:
        stores = open_stores(state.settings, place, state.clock, connection, last=last, is_new=is_new)
    state.stores, state.open_store, state.epoch = stores, stores.open, stores.epoch
