"""Public keys of those who sign notes, as texts: `name+id+base64` (C2SP signed-note, "Verifier keys").

Owns what such a text must look like. Knows no cryptography: whether 32 bytes are a key shows when they are used.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from typing import Final

import msgspec

LOG: Final = 1
"""Ed25519, of a log that signs its checkpoints."""
WITNESS: Final = 4
"""Ed25519, of a witness that cosigns them (C2SP tlog-cosignature)."""
ID_BYTES: Final = 4
PUBLIC_BYTES: Final = 32
NAME: Final = re.compile(r"[^\s+\x00-\x1f\x7f]{1,500}")


class NoVerifierKey(ValueError):
    """The text is no verifier key of the wanted kind."""


class VerifierKey(msgspec.Struct, frozen=True):
    """A public key, and the name that it signs under."""

    name: str
    kind: int
    public: bytes

    @property
    def key_id(self) -> bytes:
        """The first bytes of a signature by this key."""
        return key_id(self.name, self.public, self.kind)

    @property
    def text(self) -> str:
        """`name+id+base64`."""
        return f"{self.name}+{self.key_id.hex()}+{b64encode(bytes([self.kind]) + self.public).decode()}"


def key_id(name: str, public: bytes, kind: int = LOG) -> bytes:
    """The first four bytes of a key's hash (C2SP signed-note, "Signatures")."""
    return sha256(name.encode() + b"\n" + bytes([kind]) + public).digest()[:ID_BYTES]


def read_verifier_key(text: str, kind: int = LOG) -> VerifierKey:
    """The key in `name+id+base64`. Raises NoVerifierKey."""
    # Base64 has plus signs, too, and neither a name nor an id has one.
    name, identifier, encoded = (*text.strip().split("+", 2), "", "")[:3]
    try:
        data = b64decode(encoded, validate=True)
    except (NotBase64, ValueError):
        data = b""
    key = VerifierKey(name, kind, data[1:])
    if len(data) != 1 + PUBLIC_BYTES or data[0] != kind or b64encode(data).decode() != encoded:
        raise NoVerifierKey(f"not a verifier key, name+id+base64, of {_KINDS[kind]}")
    if not NAME.fullmatch(name) or identifier != key.key_id.hex():
        raise NoVerifierKey("its id does not belong to its name and its key: a part of it was changed")
    return key


_KINDS: Final = {LOG: "a log (type 1, Ed25519)", WITNESS: "a witness (type 4, Ed25519)"}
