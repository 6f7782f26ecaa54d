"""Signed notes opened with keys that were known before, and checkpoints read from them. Never asks anybody.

Formats: C2SP signed-note, tlog-checkpoint and tlog-cosignature. Guarantees that what a note says is given only after a
trusted key's signature over it was checked.
"""

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gateway_client.errors import EvidenceRefused

LOG, WITNESS = 1, 4
"""Types of keys in signed notes: Ed25519 of a log, and Ed25519 of a witness's cosignatures."""
MAX_NOTE = 16_384
_SIZE = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_EXTENSION = re.compile(r"time=([0-9T:.-]+Z) unresolved=(0|[1-9][0-9]{0,17})", re.ASCII)
_SIGNATURE = re.compile(r"\N{EM DASH} ([^ +]+) ([A-Za-z0-9+/]+={0,2})")
_NO_TEXT = re.compile("[\x00-\x09\x0b-\x1f\ud800-\udfff]")
_ID_BYTES = 4
_LAST_SECOND = 1 << 37


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key of a log or of a witness, and the name that it signs under."""

    name: str
    key_id: bytes
    public: bytes

    @classmethod
    def parse(cls, text: str, kind: int = LOG) -> "VerifierKey":
        """From its text `name+id+base64`. Raises ValueError, also for a key of another kind or with a false id."""
        name, key_id, encoded = [*text.split("+", 2), "", ""][:3]
        try:
            data = unbase64(encoded)
        except ValueError:
            data = b""
        own_id = sha256(name.encode(errors="replace") + b"\n" + data).digest()[:_ID_BYTES]
        if not name or len(data) != 33 or data[0] != kind or own_id.hex() != key_id:
            raise ValueError(f"{text!a} is not a verifier key of type {kind} with its own id")
        return cls(name, own_id, data[1:])


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A gateway's commitment to its log: the first `size` entries, by the root of their tree."""

    origin: str
    size: int
    root: bytes
    time: str
    unresolved_intents: int

    @classmethod
    def parse(cls, text: str) -> "Checkpoint":
        """Read the text of a note, which proves nothing by itself. Raises EvidenceRefused note_malformed."""
        origin, size, root, extension = [*text.split("\n"), "", "", "", ""][:4]
        says = _EXTENSION.fullmatch(extension)
        if says is None or not origin or not _SIZE.fullmatch(size):
            raise _malformed("The checkpoint's lines of origin, size, root and time have another form.")
        try:
            return cls(origin, int(size), unbase64(root), says[1], int(says[2]))
        except ValueError:
            raise _malformed("The root of the checkpoint is not standard base64.") from None


@dataclass(frozen=True, slots=True)
class Note:
    """A note taken apart, of which nothing is verified yet."""

    text: str
    """The signed text."""
    signatures: tuple[tuple[str, bytes], ...] = field(repr=False)
    """Name of the key, and its id followed by the signature, of each signature line."""

    @classmethod
    def parse(cls, note: str) -> "Note":
        """Raises EvidenceRefused note_malformed."""
        body, _, end = note.partition("\n\n")
        lines = end.split("\n")
        signed = [match for match in map(_SIGNATURE.fullmatch, lines) if match]
        if len(note) > MAX_NOTE or _NO_TEXT.search(note) or lines[-1] or not 0 < len(signed) == len(lines) - 1:
            raise _malformed("The checkpoint is not a signed note.")
        try:
            return cls(f"{body}\n", tuple((match[1], unbase64(match[2])) for match in signed))
        except ValueError:
            raise _malformed("A signature of the checkpoint is not standard base64.") from None

    def check_signature(self, key: VerifierKey) -> None:
        """Raises EvidenceRefused note_signature unless this key has signed the note, once."""
        _check(key, self._signature_of(key, "note_signature"), self.text.encode(), "note_signature")

    def check_cosignature(self, key: VerifierKey) -> str:
        """The time at which this witness cosigned the note. Raises EvidenceRefused witness_signature."""
        reason = "witness_signature"
        data = self._signature_of(key, reason)
        seconds = int.from_bytes(data[:8], "big")
        _check(key, data[8:], f"cosignature/v1\ntime {seconds}\n{self.text}".encode(), reason)
        if seconds >= _LAST_SECOND:
            raise EvidenceRefused(reason, f"The signature by {key.name!a} has no possible time.")
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")

    def _signature_of(self, key: VerifierKey, reason: str) -> bytes:
        own = [data[_ID_BYTES:] for name, data in self.signatures if (name, data[:_ID_BYTES]) == (key.name, key.key_id)]
        if len(own) != 1:
            raise EvidenceRefused(reason, f"The checkpoint needs one signature by the trusted key of {key.name!a}.")
        return own[0]


def open_note(note: str, keys: Iterable[VerifierKey]) -> str:
    """The text of a note that one of these keys has signed. Raises EvidenceRefused."""
    parsed = Note.parse(note)
    require_signature(parsed, keys)
    return parsed.text


def open_checkpoint(note: str, keys: Iterable[VerifierKey]) -> Checkpoint:
    """The checkpoint in a note that one of these keys has signed, under the name of its origin.

    Raises EvidenceRefused note_malformed, note_origin, note_signature.
    """
    parsed = Note.parse(note)
    checkpoint = Checkpoint.parse(parsed.text)
    trusted = tuple(keys)
    own = [key for key in trusted if key.name == checkpoint.origin]
    if not own:
        names = ", ".join(sorted({ascii(key.name) for key in trusted})) or "no log"
        raise EvidenceRefused("note_origin", f"The checkpoint is of the log {checkpoint.origin!a}, not of {names}.")
    require_signature(parsed, own)
    return checkpoint


def require_signature(note: Note, keys: Iterable[VerifierKey]) -> None:
    """Raises EvidenceRefused note_signature unless one of these keys has signed the note."""
    refusal = EvidenceRefused("note_signature", "There is no trusted key to verify the checkpoint with.")
    for key in keys:
        try:
            note.check_signature(key)
        except EvidenceRefused as error:
            refusal = error
        else:
            return
    raise refusal


def unbase64(text: str) -> bytes:
    """Standard base64, in the one form that an encoder writes. Raises ValueError."""
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError("not standard base64")
    return data


def _check(key: VerifierKey, signature: bytes, message: bytes, reason: str) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise EvidenceRefused(reason, f"The signature by {key.name!a} is invalid.") from None


def _malformed(sentence: str) -> EvidenceRefused:
    return EvidenceRefused("note_malformed", sentence)
