"""`python -m notary.seal --before TIME --out DIR`, settings as JSON on standard input: move the oldest part of a ledger
to a file of its own.

Behind `gateway ledger seal`, which holds the state directory meanwhile. The segment is durable and was read back before
one transaction writes the event `LedgerSealed`, moves the ledger's beginning and deletes the rows. After a kill at any
point the ledger has all rows, or the segment and the event.
"""

import argparse
import os
import sqlite3
import sys
from base64 import b64encode
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from ipc.events import LEDGER_SEALED, AuditEvent
from ipc.process.clock import TimeSource, parse_iso
from ipc.settings import Settings
from ipc.texts.identifiers import new
from notary.accepting import outcome
from notary.backends.sqlite import connect
from notary.checkpoints import Checkpoints, public_keys
from notary.database import OpenTransaction
from notary.ledger import activity
from notary.ledger.activity import count_rest
from notary.ledger.cut import BEGINNING, Cut, read_cut, write_cut
from notary.opening import open_state
from notary.reading.audit import CannotCheck
from notary.reading.source import NotReadable, Source, opened
from notary.sealing.choosing import NothingToSeal, choose
from notary.sealing.segment import CarriedKeys, NotSealed, WrittenSegment, write_segment
from notary.signing.rotation import Signers
from notary.state import NotaryState
from notary.tree.notes import origin_of, verifier_key
from notary.unit import Transaction

LEAST_AGE_SECONDS: Final = 86_400.0
"""Holds, polls and receipts that agents still ask for are younger."""
_DELETED: Final = (("events", "events"), ("receipts", "events"), ("kept_values", "events"), ("intents", "intents"))
"""Table, and the member of Cut that says up to which number its rows go."""
_ERASED_SINCE: Final = "SELECT 1 FROM kept_values WHERE erased_by > ? AND seq <= ? LIMIT 1"


def seal(settings: Settings, before: float, folder: Path, by: str = "", clock: TimeSource | None = None) -> str:
    """Do it; a sentence that tells what was. Raises ValueError, DatabaseGone, KeyFileError, OSError, sqlite3.Error."""
    state, _ = open_state(settings, clock)
    try:
        if before > state.clock.now() - LEAST_AGE_SECONDS:
            raise NotSealed("--before: what is younger than a day may still be asked for")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with opened(_source(settings)) as connection:  # a unit has less time than a long copy takes
            connection.execute("BEGIN")
            (newest,) = connection.execute("SELECT max(seq) FROM events").fetchone()
            beginning = read_cut(connection, BEGINNING)
            chosen = choose(connection, before, beginning)
            segment = write_segment(connection, folder, beginning, chosen, _keys(settings, state.signers))
            connection.execute("ROLLBACK")
        _cut_off(state, segment, newest, by)
        Checkpoints(state).make()
        if not state.database.is_shared:
            _shrink(Path(settings.ledger_file))
    except (NothingToSeal, NotSealed, CannotCheck, NotReadable) as error:
        raise ValueError(f"{error}.") from None
    finally:
        state.database.close()
    end = segment.end
    return (
        f"{segment.path} has {end.events - beginning.events} events and {end.intents - beginning.intents} intents, up "
        f"to {end.until}, {segment.findings.receipts} receipts. What stays begins with {chosen.stopped_by}."
    )


def _source(settings: Settings) -> Source:
    ledger = settings.ledger
    return Source(ledger.url or settings.ledger_file, ledger.password_file, ledger.ca_file)


def _keys(settings: Settings, signers: Signers) -> CarriedKeys:
    origin = settings.evidence.origin or origin_of(settings.public_base_url)
    return CarriedKeys(signers.keys.receipt.jwks(), [verifier_key(origin, key) for key in public_keys(signers)])


def _cut_off(state: NotaryState, segment: WrittenSegment, newest: int, by: str) -> None:
    """`newest`: the last event that the ledger had when the segment was copied."""
    with state.database.unit() as connection:
        unit = Transaction(state, connection)
        end = segment.end
        # SECURITY: another gateway of a shared ledger may have erased values that the copy still has.
        if connection.execute(_ERASED_SINCE, (newest, end.events)).fetchone() is not None:
            segment.path.unlink()
            raise NotSealed("kept values were erased meanwhile: seal again")
        change = {
            "segment": end.segment, "digest": end.digest, "leaves": end.leaves, "events": end.events,
            "intents": end.intents, "root": b64encode(bytes.fromhex(end.root)).decode(), "until": end.until,
        } | ({"by": by} if by else {})  # fmt: skip
        event = AuditEvent(event_type=LEDGER_SEALED, trace_id=new("trc_"), principal="gateway", decision="allow")
        unit.append(event, change=change)
        write_cut(connection, BEGINNING, end)
        activity.count_rest(connection)
        _delete(connection, end)
        unit.finish([])
    unit.commit()


def _delete(connection: OpenTransaction, end: Cut) -> None:
    count_rest(connection)
    for table, member in _DELETED:
        connection.execute(f"DELETE FROM {table} WHERE seq <= ?", (getattr(end, member),))  # noqa: S608 - of this file


def _shrink(file: Path) -> None:
    """Give the free pages back to the disk; without room for a copy they stay, and are used again."""
    with closing(connect(file, writes=True)) as ledger, suppress(sqlite3.OperationalError):
        ledger.execute("VACUUM")
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py; the sentence that explains it goes to standard
    error."""
    parser = argparse.ArgumentParser(prog="python -m notary.seal", description="Move the oldest part of a ledger.")
    parser.add_argument("--before", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--by", default="")
    given = parser.parse_args(arguments)
    os.umask(0o077)
    return outcome(lambda settings: seal(settings, parse_iso(given.before), given.out.absolute(), given.by))


if __name__ == "__main__":
    sys.exit(main())
