"""NextCheckpoint, Cosign and NoteTrouble: the checkpoints that witnesses cosign, and their cosignatures.

A front carries both, and is not trusted: a cosignature counts only if it verifies under the configured key, over a
checkpoint of this log, at a plausible time.
"""

from base64 import b64encode
from pathlib import Path
from typing import Final

from ipc.keys.verifier_keys import VerifierKey
from ipc.operations.witnesses import Cosign, NextCheckpoint, NoteTrouble, ToCosign
from ipc.process.clock import parse_iso
from ipc.process.logs import log
from ipc.process.private_files import PrivateFileError
from notary import checkpoint_file
from notary.ledger import witnesses
from notary.ledger.witnesses import Cosigned
from notary.reading.queries import newest_note, note_of, read_note
from notary.tree.checkpoint import Checkpoint, NoteRefused, parted
from notary.tree.cosignatures import cosignature_in, with_cosignature
from notary.tree.tiles import Tree
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

SKEW_SECONDS: Final = 300
"""By how much the clock of a witness may be wrong."""
_KEEP = "UPDATE checkpoints SET note = ? WHERE size = ?"


@performs(NextCheckpoint)
def next_checkpoint(unit: Transaction, asked: NextCheckpoint) -> ToCosign | None:
    """See NextCheckpoint. Raises DatabaseGone, NotAllowed."""
    _key_of(unit, asked.witness)
    note = newest_note(unit.connection)
    if note is None:
        return None
    size = read_note(note).size
    cosigned = unit.state.witnesses.cosigned.get(asked.witness)
    if asked.old_size is None and cosigned is not None and cosigned.size == size:
        return None
    known = 0 if cosigned is None else cosigned.size
    old_size = known if asked.old_size is None else asked.old_size
    proof = Tree(unit.connection).consistency_proof(old_size, size) if 0 <= old_size <= size else []
    return ToCosign(old_size=old_size, size=size, proof=tuple(b64encode(one).decode() for one in proof), note=note)


@performs(Cosign, writes=True)
def cosign(unit: Transaction, asked: Cosign) -> str | None:
    """See Cosign. Raises NotAllowed, DatabaseGone."""
    key, known = _key_of(unit, asked.witness), unit.state.witnesses
    note = note_of(unit.connection, asked.size)
    try:
        if note is None:
            raise NoteRefused("the log has no checkpoint of this size any more")
        text, _ = parted(note)
        checkpoint = Checkpoint.parse(text)
        made = cosignature_in(asked.lines, text, key)
        _check_time(made.time, checkpoint, unit.now)
        whole = with_cosignature(note, made, key)
    except NoteRefused as error:
        problem = str(error)
        unit.after(lambda: known.complain(asked.witness, problem))
        return problem
    unit.connection.execute(_KEEP, (whole, asked.size))
    cosigned = witnesses.keep(unit.connection, asked.witness, Cosigned(key.text, asked.size, made.time))
    path = Path(unit.state.settings.state_dir) / checkpoint_file.FILE_NAME
    unit.after(lambda: known.follow(asked.witness, cosigned))
    unit.after(lambda: _keep_outside(path, checkpoint.time, whole))
    return None


@performs(NoteTrouble)
def note_trouble(unit: Transaction, asked: NoteTrouble) -> None:
    """See NoteTrouble. Raises NotAllowed."""
    _key_of(unit, asked.witness)
    unit.after(lambda: unit.state.witnesses.complain(asked.witness, asked.problem))


def _key_of(unit: Transaction, name: str) -> VerifierKey:
    key = unit.state.witnesses.keys.get(name)
    if key is None:
        raise NotAllowed("no such witness is configured")
    return key


def _check_time(time: int, checkpoint: Checkpoint, now: float) -> None:
    if time < parse_iso(checkpoint.time) - SKEW_SECONDS:
        raise NoteRefused("the cosignature is dated before the checkpoint was signed")
    if time > now + SKEW_SECONDS:
        raise NoteRefused("the cosignature is dated in the future")


def _keep_outside(path: Path, time: str, note: str) -> None:
    """The database has it already: what the file lacks is made good by the next one."""
    try:
        checkpoint_file.append(path, time, note)
    except (OSError, PrivateFileError) as error:
        log.warning("a cosigned checkpoint could not be written to its file", cause=str(error))
