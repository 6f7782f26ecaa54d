"""Notes signed and opened (C2SP signed-note), with Ed25519 keys under the name of their log. Pure; holds no file."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ipc.keys import verifier_keys
from ipc.keys.verifier_keys import LOG, NoVerifierKey, VerifierKey, key_id
from notary.tree.checkpoint import Checkpoint, NoteRefused, parted

_SIGNATURE_BYTES: Final = 64

Keys = Mapping[str, Sequence[Ed25519PublicKey]]
"""Public keys by the name under which they sign."""


def verifier_key(name: str, public: Ed25519PublicKey, kind: int = LOG) -> str:
    """A key as it is given to verifiers: `name+id+base64`."""
    return VerifierKey(name, kind, public.public_bytes_raw()).text


def read_verifier_key(text: str, kind: int = LOG) -> tuple[str, Ed25519PublicKey]:
    """The name and the key in `name+id+base64`. Raises NoteRefused."""
    try:
        key = verifier_keys.read_verifier_key(text, kind)
        return key.name, Ed25519PublicKey.from_public_bytes(key.public)
    except NoVerifierKey as error:
        raise NoteRefused(str(error)) from None


def signed(text: str, name: str, key: Ed25519PrivateKey) -> str:
    """The note of a text that ends with a newline."""
    identified = key_id(name, key.public_key().public_bytes_raw()) + key.sign(text.encode())
    return f"{text}\n\N{EM DASH} {name} {b64encode(identified).decode()}\n"


def opened(note: str, keys: Keys) -> str:
    """The text of a note that one of these keys has signed under its name. Raises NoteRefused."""
    text, signatures = parted(note)
    for name, identifier, signature in signatures:
        for key in keys.get(name, ()):
            if identifier == key_id(name, key.public_bytes_raw()) and _holds(key, signature, text.encode()):
                return text
    raise NoteRefused("the note has no signature that holds, by a known key")


def opened_checkpoint(note: str, keys: Iterable[Ed25519PublicKey]) -> Checkpoint:
    """The checkpoint in a note that one of these keys has signed under the name of its origin. Raises NoteRefused."""
    checkpoint = Checkpoint.parse(parted(note)[0])
    opened(note, {checkpoint.origin: tuple(keys)})
    return checkpoint


def _holds(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    if len(signature) != _SIGNATURE_BYTES:
        return False
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True
