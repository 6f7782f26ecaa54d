"""Checkpoints: what the tree was, signed, kept in the database and in a file beside it.

At most one a second while the tree grows, one when the notary stops, and one for each question about a leaf that
none covers yet. Guarantees that what a checkpoint commits to was durable before it was signed, and that a start from a
ledger which does not continue the last checkpoint is refused.
"""

import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ipc.network.loopback import ledger_origin
from ipc.process.clock import ClockWrong, iso, parse_iso
from ipc.process.logs import log
from ipc.process.private_files import PrivateFileError
from ipc.texts.encoding import b64url_decode
from notary import checkpoint_file
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger import gateways
from notary.ledger.settling import settle_all
from notary.reading.ends import problem_of_end
from notary.reading.queries import count_unresolved, newest_note, note_of
from notary.signing.rotation import Signers
from notary.state import NotaryState
from notary.tree.checkpoint import Checkpoint, NoteRefused, parted
from notary.tree.notes import opened_checkpoint, signed
from notary.tree.tiles import Tree

BACKUP: Final = "backup"
"""In `meta` of a copy that was made as a backup: when it was taken."""
LOGGED_SECONDS: Final = 60.0
KEPT_DAYS: Final = 1
"""Beyond this age the database keeps one checkpoint an hour: the longest note, which has the most cosignatures. The
last one that a witness cosigned is always kept."""
_INSERT = "INSERT OR REPLACE INTO checkpoints (size, time, note) VALUES (?, ?, ?)"
_THIN = """
DELETE FROM checkpoints WHERE time < ? AND size NOT IN (
    SELECT size FROM (
        SELECT size, row_number() OVER (PARTITION BY substr(time, 1, 13) ORDER BY length(note) DESC, size) AS place
        FROM checkpoints
    ) AS ranked WHERE place = 1
) AND size NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?))
"""


class RolledBack(Exception):
    """The ledger does not continue its last checkpoint. The text is a sentence for people, with its mend."""


class Checkpoints:
    """Signs the checkpoints of one notary."""

    def __init__(self, state: NotaryState, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._monotonic = monotonic
        self._path = Path(state.settings.state_dir) / checkpoint_file.FILE_NAME
        self._origin = ledger_origin(state.settings)
        self._next = monotonic() + state.limits.checkpoint_seconds
        self._log_at = monotonic()
        self._thinned_hour = ""
        self._is_failing = False

    def patience(self) -> float:
        """Seconds until one is due; without end while the tree does not grow."""
        return max(0.0, self._next - self._monotonic()) if self._has_grown() else inf

    def tend(self) -> None:
        """Sign one if it is time."""
        if self._has_grown() and self._monotonic() >= self._next:
            self.make()

    def make(self) -> Checkpoint | None:
        """The checkpoint of everything that is durable now; None when it could not be made, which the log says."""
        self._next = self._monotonic() + self._state.limits.checkpoint_seconds
        try:
            made = self._made()
        except (DatabaseGone, ClockWrong, PrivateFileError, OSError) as error:
            if not self._is_failing:
                log.error("no checkpoint could be signed; evidence goes on without", cause=str(error))
            self._is_failing = True
            return None
        if self._is_failing:
            log.info("checkpoints are signed again", size=made.size)
        self._is_failing = False
        return made

    def _has_grown(self) -> bool:
        last = self._state.checkpoint
        return self._state.leaves is not None and self._state.leaves != (0 if last is None else last.size)

    def _made(self) -> Checkpoint:
        state, last = self._state, self._state.checkpoint
        if state.unsettled is not None:
            settle_all(state.database, state.unsettled)
        with state.database.unit(writes=False) as connection:
            tree, unresolved = Tree(connection), count_unresolved(connection)
            made = Checkpoint(self._origin, tree.size, tree.root(), state.clock.iso(), unresolved)
        if last is not None and last.size == made.size and last.origin == made.origin:
            return last
        note = signed(made.text, self._origin, state.signers.keys.checkpoint.private)
        checkpoint_file.append(self._path, made.time, note)
        with state.database.unit(is_durable=False) as connection:
            if state.database.is_shared:
                gateways.note_checkpoint(connection, state.database.gateway_id, made.size)
            if not state.database.is_shared or note_of(connection, made.size) is None:  # another may have cosignatures
                connection.execute(_INSERT, (made.size, made.time, note))
            self._thin(connection, made.time)
        state.checkpoint = made
        self._say(made)
        return made

    def _thin(self, connection: OpenTransaction, now: str) -> None:
        if now[:13] != self._thinned_hour:
            cosigned = [one.size for one in self._state.witnesses.cosigned.values()]
            connection.execute(_THIN, (iso(parse_iso(now) - KEPT_DAYS * 86_400), f"{cosigned}"))
            self._thinned_hour = now[:13]

    def _say(self, made: Checkpoint) -> None:
        now = self._monotonic()
        if now >= self._log_at:
            self._log_at = now + LOGGED_SECONDS
            log.info("checkpoint", origin=made.origin, size=made.size, root=made.root.hex())


def public_keys(signers: Signers) -> list[Ed25519PublicKey]:
    """Every key that has signed checkpoints."""
    listed = signers.keys.checkpoint.listed
    return [Ed25519PublicKey.from_public_bytes(b64url_decode(one.jwk["x"])) for one in listed]


def check_continued(
    connection: OpenTransaction, state_dir: Path, signers: Signers, gateway_id: str | None = None
) -> Checkpoint | None:  # fmt: skip
    """The last checkpoint, which this ledger continues; None for one that never had any. `gateway_id`: of
    several gateways that share it, this one. Raises RolledBack, DatabaseGone, OSError."""
    path = state_dir / checkpoint_file.FILE_NAME
    note, tree = checkpoint_file.newest(path), Tree(connection)
    taken = connection.execute("SELECT value FROM meta WHERE key = ?", (BACKUP,)).fetchone()
    if taken is not None:
        # SECURITY: later uses of proofs, budgets and holds are missing from it: no earlier lease may stay valid.
        raise RolledBack(f"the ledger is a backup of {taken[0]}. {_MEND}")
    if (problem := problem_of_end(connection, tree.size)) is not None:
        raise RolledBack(f"{problem}. {_MEND}")
    known = _known(connection, gateway_id)
    if note is None:
        if known is None:
            return None
        problem = "has no checkpoint that can be read" if path.exists() else "is gone"
        raise RolledBack(f"{path}, which says how far the ledger was, {problem}. {_MEND}")
    try:
        last = opened_checkpoint(note, public_keys(signers))
    except NoteRefused as error:
        raise RolledBack(f"{path}: its last checkpoint can't be believed: {error}. {_MEND}") from None
    if tree.size < last.size:
        raise RolledBack(
            f"the ledger has {tree.size} leaves, and at {last.time} it had {last.size}: it was cut, or an earlier "
            f"copy was put back. {_MEND}"
        )
    if tree.root(last.size) != last.root:
        raise RolledBack(
            f"the ledger's first {last.size} leaves are not those of {last.time}: it was rewritten. {_MEND}"
        )
    if known is not None and known > last.size:
        # A checkpoint comes to this file before it comes to the ledger.
        raise RolledBack(
            f"{path} ends with {last.size} leaves, and the ledger knows a checkpoint of {known}: the file was cut, or "
            f"is an earlier copy. {_MEND}"
        )
    return last


def problem_of_sharing(connection: OpenTransaction, signers: Signers, origin: str) -> str | None:
    """Why a gateway with these keys and this name makes another log of a ledger that it shares, as a sentence. Raises
    DatabaseGone."""
    note = newest_note(connection)
    if note is None:
        return None
    try:
        last = opened_checkpoint(note, public_keys(signers))
    except NoteRefused:
        return "its newest checkpoint is signed by none of this gateway's keys: copy those of the first host"
    if last.origin == origin:
        return None
    return f"its newest checkpoint is of {last.origin}, and this gateway's are of {origin}: see evidence.origin"


def problem_of_return(connection: OpenTransaction, last: Checkpoint | None) -> str | None:
    """Why a ledger that was gone for a while does not continue the last checkpoint. Raises TilesDamaged."""
    tree = Tree(connection)
    if last is None or (tree.size >= last.size and tree.root(last.size) == last.root):
        return None
    return f"the ledger does not continue the checkpoint of {last.time}: it was put back, cut or rewritten"


def _known(connection: OpenTransaction, gateway_id: str | None) -> int | None:
    """Leaves of the last checkpoint of this gateway that the ledger has."""
    if gateway_id is not None:
        return gateways.last_checkpoint(connection, gateway_id)
    stored = newest_note(connection)
    return None if stored is None else _size_of(stored)


def _size_of(note: str) -> int:
    try:
        return Checkpoint.parse(parted(note)[0]).size
    except NoteRefused as error:
        raise RolledBack(f"the ledger's newest checkpoint makes no sense: {error}. {_MEND}") from None


_MEND = (
    "Put the ledger that belongs to it back; or, if it is lost, tell why and go on with"
    " gateway ledger accept-rollback --reason TEXT."
)
