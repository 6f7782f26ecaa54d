"""Copies the next part of a ledger to a segment, by a connection that can't write: a gateway may go on writing.

Before the cut only kept values may still change: they may be erased. The ledger is asked about those when it is cut
(notary/operations/cutting.py).
"""

from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ipc.keys.verifier_keys import NAME
from ipc.network.loopback import ledger_origin
from ipc.settings import Settings
from ipc.texts.encoding import b64url_decode
from notary.database import OpenTransaction
from notary.ledger.cut import BEGINNING, read_cleared, read_cut
from notary.ledger.kept_values import has_values
from notary.operations.cutting import NOT_ERASED, SealedRange
from notary.reading.source import Source, opened
from notary.reading.standing import MOST_NAMES
from notary.sealing.choosing import NothingToSeal, choose
from notary.sealing.segment import CarriedKeys, WrittenSegment, write_segment
from notary.signing.keysets import read_set
from notary.signing.rotation import places_of
from notary.tree.notes import verifier_key


class CopiedRange(NamedTuple):
    """A segment that is whole, in its place; the ledger still has all of it."""

    segment: WrittenSegment
    sealed: SealedRange
    stopped_by: str

    @property
    def told(self) -> str:
        """A sentence for people."""
        beginning, end = self.sealed.beginning, self.sealed.end
        return (
            f"{self.segment.path} has {end.events - beginning.events} events and {end.intents - beginning.intents} "
            f"intents, up to {end.until}, {self.segment.findings.receipts} receipts. What stays begins with "
            f"{self.stopped_by}."
        )


def copy(settings: Settings, before: float, folder: Path, by: str) -> CopiedRange:
    """Write the segment of everything before a time (Unix seconds). Raises NothingToSeal, NotSealed, CannotCheck,
    NotReadable, OSError, sqlite3.Error, KeyFileError, ValueError."""
    ledger = settings.ledger
    source = Source(ledger.url or settings.ledger_file, ledger.password_file, ledger.ca_file)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with opened(source) as connection:
        if read_cleared(connection) is not None:
            raise NothingToSeal("rows of the segment before it are still being deleted: try again later")
        (newest,) = connection.execute("SELECT max(seq) FROM events").fetchone()
        beginning = read_cut(connection, BEGINNING)
        chosen = choose(connection, before, beginning)
        if settings.evidence.keep_days and has_values(connection, chosen.events):
            raise NothingToSeal(f"{NOT_ERASED}: name a time before them")
        keys = _carried_keys(settings, _names(connection))
        segment = write_segment(connection, folder, beginning, chosen, keys)
    return CopiedRange(segment, SealedRange(beginning, segment.end, newest, by), chosen.stopped_by)


def _carried_keys(settings: Settings, names: set[str]) -> CarriedKeys:
    """The public keys of receipts and checkpoints, from their sets: no private key is needed. `names`: of the ledger,
    beside that of now."""
    places = places_of(settings)
    receipts, checkpoints = (
        [] if place.set is None else read_set(place.set, place.kind) for place in (places.receipt, places.checkpoint)
    )
    origins = sorted(names | {ledger_origin(settings)})
    public = [Ed25519PublicKey.from_public_bytes(b64url_decode(one.jwk["x"])) for one in checkpoints]
    return CarriedKeys(
        {"keys": [one.jwk for one in receipts]}, [verifier_key(origin, key) for origin in origins for key in public]
    )


def _names(connection: OpenTransaction) -> set[str]:
    """The names in the ledger's checkpoints: it may have got another one. A malformed name is left to the
    verifiers of the segment."""
    names = set[str]()
    for (note,) in connection.execute("SELECT note FROM checkpoints"):
        name = note.partition("\n")[0]
        if len(names) < MOST_NAMES and NAME.fullmatch(name):
            names.add(name)
    return names
