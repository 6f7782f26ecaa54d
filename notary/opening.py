"""Opens the database, brought to this version, and the keys, before a notary serves."""

from pathlib import Path
from typing import Any

from ipc.network.loopback import ledger_origin
from ipc.operations.exporting import EventPosition
from ipc.process.clock import SystemClock, TimeSource
from ipc.process.logs import log
from ipc.settings import Settings
from notary.backends.bringing import bring_store_over
from notary.backends.sqlite import SqliteDatabase as SqliteDatabase
from notary.checkpoints import check_continued, problem_of_return, problem_of_sharing
from notary.database import Database, OpenTransaction
from notary.event_export import FILE_NAME as EXPORTED_EVENTS
from notary.event_export import EventExports
from notary.ledger import gateways, refused, schema, witnesses
from notary.ledger.head import Head, read_head
from notary.ledger.outbox import Backlog
from notary.ledger.settling import Unsettled, settle_all
from notary.ledger.witnesses import ConfiguredWitnesses
from notary.reading.queries import newest_time
from notary.servers.registration import StoreServer
from notary.servers.table import NOT_LOOKED_UP, Places, ledger_server, place_of, store_server
from notary.signing.rotation import Signers
from notary.state import DEFAULT_LIMITS, NotaryLimits, NotaryState
from notary.store import proofs, sessions
from notary.store.marker import read_marker
from notary.tree import tiles
from notary.units.runner import count_backlog, remembered
from notary.units.tasks import Remembered


def open_state(
    settings: Settings,
    clock: TimeSource | None = None,
    *,
    limits: NotaryLimits = DEFAULT_LIMITS,
    is_accepted: bool = False,
    places: Places = NOT_LOOKED_UP,
) -> tuple[NotaryState, Remembered]:
    """Open everything. Raises DatabaseGone, StoreGone, RolledBack, KeyFileError, OSError, ValueError with a sentence
    for people.

    `clock` None: the machine's, held against the newest evidence. `is_accepted`: the last checkpoint need not be
    continued. `places`: where backends are, if their names were looked up already.
    """
    server = ledger_server(settings)
    if server is None:
        database = _open_file(settings, limits)
    else:
        database = server.open(settings, place_of(server, settings, places))
    try:
        return _opened(settings, database, clock, limits, places, is_accepted=is_accepted)
    except BaseException:
        database.close()
        raise


def _opened(
    settings: Settings,
    database: Database,
    clock: TimeSource | None,
    limits: NotaryLimits,
    places: Places,
    *,
    is_accepted: bool,
) -> tuple[NotaryState, Remembered]:
    state_dir = Path(settings.state_dir)
    # SECURITY: by the lock of a shared ledger, what the notary before this one was committing has ended.
    with database.unit(writes=database.is_shared) as connection:
        last_unit = gateways.read_last(database, connection)
        answers, unsettled = remembered(connection, last_unit), Unsettled(last_unit)
    last = unsettled.number
    settle_all(database, unsettled)
    if not database.is_shared:
        with database.unit(is_durable=False) as connection:
            proofs.bring(connection)
    gateway = database.gateway_id if database.is_shared else None
    signers = Signers.open(settings)
    with database.unit(writes=False) as connection:
        newest = newest_time(connection) or 0.0
        checkpoint = None if is_accepted else check_continued(connection, state_dir, signers, gateway)
        if gateway is not None and (problem := problem_of_sharing(connection, signers, ledger_origin(settings))):
            log.error("gateways that share the ledger sign it as different logs", cause=problem)
        epoch = proofs.epoch(connection)
        leaves = tiles.size(connection)
        revoked = sessions.revoked(connection, newest)
        refusals = refused.read(connection, database.gateway_id)
        export = EventExports(state_dir / EXPORTED_EVENTS, _end_of(connection))
        known = ConfiguredWitnesses(settings.evidence.witnesses, witnesses.read(connection))
    backlog = Backlog(settings.webhooks, settings.version)
    clock = clock or SystemClock(newest)
    state = NotaryState(
        settings, clock, database, signers, backlog, known, limits, leaves=leaves, checkpoint=checkpoint,
        epoch=epoch, revoked=revoked, newest=newest, unsettled=unsettled, refusals=refusals,
        export=export,
    )  # fmt: skip
    server = store_server(settings)
    if server is None:
        with database.unit(writes=False) as connection:
            state.has_other_store = read_marker(connection) is not None
    else:
        _open_store(state, server, place_of(server, settings, places), last, is_new=newest == 0.0)
    database.check = lambda connection: problem_of_return(connection, state.checkpoint)
    count_backlog(state)
    return state, answers


def _end_of(connection: OpenTransaction) -> EventPosition:
    """The end of the chain; a head that is damaged is for those to tell who need it."""
    head = read_head(connection) or Head()
    return EventPosition(head.seq, head.hash)


def _open_file(settings: Settings, limits: NotaryLimits) -> Database:
    database = SqliteDatabase(Path(settings.ledger_file), schema.prepare, limits.database)
    database.open()
    bring_store_over(database, Path(settings.state_dir) / "store.sqlite3")
    return database


def _open_store(state: NotaryState, server: StoreServer, place: Any, last: int, *, is_new: bool) -> None:
    gateway_id = state.database.gateway_id
    with state.database.unit() as connection:
        stores = server.open(
            state.settings, place, state.clock, connection, last=last, is_new=is_new, gateway_id=gateway_id
        )
    state.stores, state.open_store, state.epoch = stores, stores.open, stores.epoch
    state.revoked = stores.revoked
