"""Cosignatures of checkpoints by witnesses (C2SP tlog-cosignature, `cosignature/v1`, Ed25519). Pure; holds no file.

A cosignature says that its witness, at that time, knew of no longer tree of this log, and of none that this checkpoint
does not continue.
"""

from base64 import b64encode
from collections.abc import Iterable
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ipc.keys.verifier_keys import WITNESS, VerifierKey, key_id
from notary.tree.checkpoint import MARK, MAX_NOTE, NoteRefused, parted, signature_of

TIME_BYTES: Final = 8
_SIGNATURE_BYTES: Final = 64
MAX_LINES: Final = 16
"""Lines of one answer of a witness."""


class Cosignature(NamedTuple):
    """A valid cosignature: its line, and its time (Unix seconds)."""

    line: str
    time: int


def cosign(text: str, name: str, key: Ed25519PrivateKey, time: int) -> str:
    """The signature line, with its newline, of a checkpoint's text."""
    identified = key_id(name, key.public_key().public_bytes_raw(), WITNESS)
    signed = identified + time.to_bytes(TIME_BYTES, "big") + key.sign(_message(text, time))
    return f"{MARK}{name} {b64encode(signed).decode()}\n"


def cosignature_in(lines: str, text: str, key: VerifierKey) -> Cosignature:
    """The one by this key among signature lines, of which those by others count for nothing. Raises NoteRefused."""
    if len(lines) > MAX_NOTE or lines.count("\n") > MAX_LINES or not lines.endswith("\n"):
        raise NoteRefused("the answer holds no signature lines")
    signatures = [(line, *signature_of(line)) for line in lines[:-1].split("\n")]
    for line, name, identifier, signature in signatures:
        if (name, identifier) == (key.name, key.key_id):
            return Cosignature(f"{line}\n", _checked(signature, text, key))
    raise NoteRefused("the answer has no signature by the witness's key")


def with_cosignature(note: str, made: Cosignature, key: VerifierKey) -> str:
    """The note with this cosignature, in the place of any that it had by the same key. Raises NoteRefused."""
    text, _ = parted(note)
    kept = [line for line in _lines_of(note, text) if signature_of(line[:-1])[:2] != (key.name, key.key_id)]
    whole = f"{text}\n{''.join(kept)}{made.line}"
    parted(whole)
    return whole


def count_cosignatures(note: str, keys: Iterable[VerifierKey]) -> int:
    """How many of these keys a note that we have made has a line of."""
    known = {(key.name, key.key_id) for key in keys}
    return len(known & {(name, identifier) for name, identifier, _ in parted(note)[1]})


def _lines_of(note: str, text: str) -> list[str]:
    return [f"{line}\n" for line in note[len(text) + 1 : -1].split("\n")]


def _checked(signature: bytes, text: str, key: VerifierKey) -> int:
    """When it was made. Raises NoteRefused."""
    time = int.from_bytes(signature[:TIME_BYTES], "big")
    if len(signature) != TIME_BYTES + _SIGNATURE_BYTES or time >> 63:
        raise NoteRefused("the witness's signature is no cosignature")
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(signature[TIME_BYTES:], _message(text, time))
    except (InvalidSignature, ValueError):
        raise NoteRefused("the witness's signature does not hold") from None
    return time


def _message(text: str, time: int) -> bytes:
    return f"cosignature/v1\ntime {time}\n{text}".encode()
