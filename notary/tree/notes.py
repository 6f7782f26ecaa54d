"""Notes signed and opened (C2SP signed-note), with Ed25519 keys under the name of their log. Pure; holds no file."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final
from urllib.parse import quote, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from notary.tree.checkpoint import ID_BYTES, Checkpoint, NoteRefused, decoded, parted

_ED25519: Final = b"\x01"
_SIGNATURE_BYTES: Final = 64
PUBLIC_BYTES: Final = 32


def origin_of(public_base_url: str) -> str:
    """The name of a gateway's log: its public address without the scheme."""
    parts = urlsplit(public_base_url)
    return quote(parts.netloc.lower() + parts.path.rstrip("/"), safe="/:.[]%-_~")


def key_id(name: str, public: bytes, kind: bytes = _ED25519) -> bytes:
    """The first four bytes of a key's hash (C2SP signed-note, "Signatures")."""
    return sha256(name.encode() + b"\n" + kind + public).digest()[:ID_BYTES]


def verifier_key(name: str, public: Ed25519PublicKey) -> str:
    """A key as it is given to whoever verifies: `name+id+base64`."""
    raw = public.public_bytes_raw()
    return f"{name}+{key_id(name, raw).hex()}+{b64encode(_ED25519 + raw).decode()}"


def read_verifier_key(text: str) -> tuple[str, Ed25519PublicKey]:
    """The name and the key in `name+id+base64`. Raises NoteRefused."""
    # Base64 has plus signs, too, and neither a name nor an id has one.
    name, identifier, encoded = (*text.strip().split("+", 2), "", "")[:3]
    try:
        data = decoded(encoded, 1 + PUBLIC_BYTES)
    except NoteRefused:
        data = b""
    if data[:1] != _ED25519 or not name or identifier != key_id(name, data[1:]).hex():
        raise NoteRefused("not a verifier key, name+id+base64, of an Ed25519 key")
    return name, Ed25519PublicKey.from_public_bytes(data[1:])


def signed(text: str, name: str, key: Ed25519PrivateKey) -> str:
    """The note of a text that ends with a newline."""
    identified = key_id(name, key.public_key().public_bytes_raw()) + key.sign(text.encode())
    return f"{text}\n\N{EM DASH} {name} {b64encode(identified).decode()}\n"


def opened(note: str, keys: Mapping[str, Iterable[Ed25519PublicKey]]) -> str:
    """The text of a note that one of these keys has signed under its name. Raises NoteRefused."""
    text, signatures = parted(note)
    for name, identifier, signature in signatures:
        for key in keys.get(name, ()):
            if identifier == key_id(name, key.public_bytes_raw()) and _holds(key, signature, text):
                return text
    raise NoteRefused("the note has no signature that holds, by a known key")


def opened_checkpoint(note: str, keys: Iterable[Ed25519PublicKey]) -> Checkpoint:
    """The checkpoint in a note that one of these keys has signed under the name of its origin. Raises NoteRefused."""
    checkpoint = Checkpoint.parse(parted(note)[0])
    opened(note, {checkpoint.origin: tuple(keys)})
    return checkpoint


def _holds(key: Ed25519PublicKey, signature: bytes, text: str) -> bool:
    if len(signature) != _SIGNATURE_BYTES:
        return False
    try:
        key.verify(signature, text.encode())
    except InvalidSignature:
        return False
    return True
