"""The folder of a witness: its key, and what it remembers of each log. One process at a time is in there.

Guarantees that what it remembers is durable, and replaced whole, before anything is signed because of it; and that a
record which can't be read ends the start: a log that looks new would be cosigned from anywhere.
"""

import contextlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.keys.verifier_keys import NAME, WITNESS, VerifierKey, key_id
from ipc.process.exits import Exit
from ipc.process.private_files import (
    PrivateFileError,
    check_folder,
    hold_folder,
    make_folder,
    read_private,
    remove_unfinished,
    write_private,
)
from notary.tree.checkpoint import NoteRefused, decoded
from notary.tree.merkle import HASH_BYTES

KEY_FILE: Final = "witness.key"
LOGS: Final = "logs"
_PRIVATE: Final = "PRIVATE+KEY"
_SEED_BYTES: Final = 32


class CosignedTree(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest tree of a log that was cosigned. `root` is base64; `note` is the checkpoint as the log signed it."""

    origin: str
    size: int
    root: str
    note: str

    @property
    def root_bytes(self) -> bytes:
        """The root. Raises NoteRefused."""
        return decoded(self.root, HASH_BYTES)


class OwnKey(msgspec.Struct, frozen=True):
    """The key that this witness signs with, and the name that it signs under."""

    name: str
    private: Ed25519PrivateKey

    @property
    def public(self) -> VerifierKey:
        """As those who verify need it."""
        return VerifierKey(self.name, WITNESS, self.private.public_key().public_bytes_raw())


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the one process in the folder, which is made where it is missing. Raises KeyFileError."""
    make_folder(folder)
    check_folder(folder, is_private=True)
    with hold_folder(folder):
        make_folder(folder / LOGS)
        remove_unfinished(folder / KEY_FILE)
        yield


def read_key(folder: Path) -> OwnKey | None:
    """The key; None before the first one is made. Raises KeyFileError."""
    path = folder / KEY_FILE
    if not path.exists():
        return None
    text = read_private(path).decode("utf-8", "replace").strip()
    name, identifier, encoded = (*text.removeprefix(f"{_PRIVATE}+").split("+", 2), "", "")[:3]
    try:
        data = b64decode(encoded, validate=True)
        private = Ed25519PrivateKey.from_private_bytes(data[1:])
    except ValueError:
        raise _damaged(path) from None
    expected = key_id(name, private.public_key().public_bytes_raw(), WITNESS).hex()
    if not text.startswith(_PRIVATE) or data[0] != WITNESS or len(data) != 1 + _SEED_BYTES or identifier != expected:
        raise _damaged(path)
    return OwnKey(name, private)


def make_key(folder: Path, name: str) -> OwnKey:
    """Make a key of this name. The caller must hold the folder. Raises KeyFileError."""
    if not NAME.fullmatch(name):
        raise PrivateFileError(f"--name {name!a}: must be one word without a plus sign.", Exit.CONFIG)
    made = OwnKey(name, Ed25519PrivateKey.generate())
    seed = b64encode(bytes([WITNESS]) + made.private.private_bytes_raw()).decode()
    write_private(folder / KEY_FILE, f"{_PRIVATE}+{name}+{made.public.key_id.hex()}+{seed}\n".encode())
    return made


def read_records(folder: Path, origins: Iterable[str]) -> dict[str, CosignedTree]:
    """The stored records of these logs. Raises KeyFileError."""
    records = {}
    for origin in origins:
        path = record_file(folder, origin)
        remove_unfinished(path)
        if path.exists():
            records[origin] = _read_record(path, origin)
    return records


def write_record(folder: Path, record: CosignedTree) -> None:
    """Remember this of a log, durably, in the place of what was. Blocks. Raises KeyFileError, OSError."""
    write_private(record_file(folder, record.origin), msgspec.json.encode(record) + b"\n")


def record_file(folder: Path, origin: str) -> Path:
    """Where a log's record lies."""
    return folder / LOGS / f"{sha256(origin.encode()).hexdigest()[:32]}.json"


def _read_record(path: Path, origin: str) -> CosignedTree:
    try:
        record = msgspec.json.decode(read_private(path), type=CosignedTree)
        _ = record.root_bytes
    except (msgspec.MsgspecError, NoteRefused, UnicodeDecodeError):
        raise _damaged(path) from None
    if record.origin != origin or record.size < 0:
        raise _damaged(path)
    return record


def _damaged(path: Path) -> PrivateFileError:
    return PrivateFileError(f"{path}: is damaged. Put a copy of it back.", Exit.CONFIG)
