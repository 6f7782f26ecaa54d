"""The signing keys of a gateway as they lie on the disk, each with the set of public keys that still verify.

Guarantees about a rotation that is killed at any point: there is always one whole key, a key is listed before it can
sign, and the next process that opens it puts the set in order. Rotations, and fronts that put a set in order, take
turns by a lock on the key's folder. A private key that was followed by another is kept nowhere.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.leases import LEASE_KEY_KEPT_SECONDS
from ipc.process.clock import iso
from ipc.process.exits import Exit
from ipc.process.logs import log
from ipc.process.private_files import MAX_FILE_BYTES, PrivateFileError, check_folder, hold_folder, remove_unfinished
from notary.signing.keyfiles import load_ed25519, load_p256, write_private_key
from notary.signing.keysets import (
    ED25519_SET,
    P256_SET,
    ListedKey,
    SetKind,
    public_jwk,
    published,
    read_set,
    settled,
    write_set,
)

TURN_SECONDS = 20.0
"""How long to wait for the lock: its holder writes three small files."""

K = TypeVar("K", Ed25519PrivateKey, EllipticCurvePrivateKey)


class KeyPlace(msgspec.Struct, Generic[K], frozen=True):
    """Where one signing key and its set lie. `set` None: nothing that it signed outlives the process that verifies."""

    purpose: str
    key: Path
    load: Callable[[Path], K]
    generate: Callable[[], K]
    kind: SetKind
    set: Path | None
    keep_seconds: float | None = None
    """How long a retired key stays in the set; None: for ever."""
    max_set_bytes: int = MAX_FILE_BYTES

    def write_set(self, listed: tuple[ListedKey, ...]) -> None:
        """Put these keys into the set, if there is one. Raises KeyFileError; then the file is as it was."""
        if self.set is not None:
            write_set(self.set, listed, max_bytes=self.max_set_bytes)


@dataclass(frozen=True, slots=True)
class HeldKey(Generic[K]):
    """A key that signs, and the set that verifies, its own public half included."""

    private: K = field(compare=False)
    """Read again it is another object; `kid` says which key it is."""
    kid: str
    listed: tuple[ListedKey, ...]

    @property
    def current(self) -> ListedKey:
        """The entry of the key that signs."""
        return next(one for one in self.listed if one.kid == self.kid)

    def jwks(self) -> dict[str, Any]:
        """The set as it is published."""
        return published(self.listed, self.kid)


class KeyPlaces(msgspec.Struct, frozen=True):
    """The keys of a gateway."""

    lease: KeyPlace[EllipticCurvePrivateKey]
    grant: KeyPlace[EllipticCurvePrivateKey]
    receipt: KeyPlace[Ed25519PrivateKey]
    checkpoint: KeyPlace[Ed25519PrivateKey]

    def each(self) -> tuple[KeyPlace[Any], ...]:
        """All of them."""
        return self.lease, self.grant, self.receipt, self.checkpoint


def _new_p256() -> EllipticCurvePrivateKey:
    return generate_private_key(SECP256R1())


def receipt_place(key: Path, key_set: Path) -> KeyPlace[Ed25519PrivateKey]:
    """The key of receipts; its set only grows."""
    return KeyPlace("receipt", key, load_ed25519, Ed25519PrivateKey.generate, ED25519_SET, key_set)


def checkpoint_place(beside: Path, state_dir: Path) -> KeyPlace[Ed25519PrivateKey]:
    """The key of checkpoints, in the folder of another key; its set only grows."""
    key, key_set = beside.with_name("checkpoint.pem"), state_dir / "checkpoint-keys.jwks.json"
    return KeyPlace("checkpoint", key, load_ed25519, Ed25519PrivateKey.generate, ED25519_SET, key_set)


def never_was(place: KeyPlace[K]) -> bool:
    """True for a key that the first start makes: neither it nor its set is there."""
    return place.set is not None and not os.path.lexists(place.key) and not os.path.lexists(place.set)


def make_first(place: KeyPlace[K]) -> None:
    """Make a key that never was. Raises KeyFileError."""
    if never_was(place):
        write_private_key(place.key, place.generate())


def key_places(state_dir: Path, *, lease: Path, grant: Path, receipt: Path, receipt_set: Path) -> KeyPlaces:
    """The places of a gateway with this state directory, where the set of lease keys lies."""
    lease_set = state_dir / "lease-keys.jwks.json"
    return KeyPlaces(
        KeyPlace("lease", lease, load_p256, _new_p256, P256_SET, lease_set, LEASE_KEY_KEPT_SECONDS),
        KeyPlace("grant", grant, load_p256, _new_p256, P256_SET, None),
        receipt_place(receipt, receipt_set),
        checkpoint_place(receipt, state_dir),
    )


def read_key(place: KeyPlace[K]) -> HeldKey[K]:
    """The key and its set as they should be, whatever order the set is in. Writes nothing. Raises KeyFileError."""
    return _read(place)[0]


def open_key(
    place: KeyPlace[K], known: tuple[ListedKey, ...] = (), *, wait_seconds: float = TURN_SECONDS
) -> HeldKey[K]:
    """The key, once its set is in order on the disk. Raises KeyFileError.

    `known` are keys that the set had: one that keeps its keys for ever gets back those that were removed.
    """
    held, is_settled = _read(place, known)
    if is_settled:
        return held
    with hold_folder(place.key.parent, wait_seconds=wait_seconds):
        return settle_key(place, known)


def settle_key(place: KeyPlace[K], known: tuple[ListedKey, ...] = ()) -> HeldKey[K]:
    """Put the set in order and return the key. The caller must hold the key's folder. Raises KeyFileError."""
    held, is_settled = _read(place, known)
    if not is_settled:
        place.write_set(held.listed)
    return held


def _read(place: KeyPlace[K], known: tuple[ListedKey, ...] = ()) -> tuple[HeldKey[K], bool]:
    private = place.load(place.key)
    jwk = public_jwk(private)
    try:
        created = iso(place.key.stat().st_mtime)
    except OSError:
        created = None
    current = ListedKey(jwk, created)
    if place.set is None:
        return HeldKey(private, current.kid, (current,)), True
    listed: tuple[ListedKey, ...] = read_set(place.set, place.kind)
    lost: list[ListedKey] = _lost(place.set, listed, known if place.keep_seconds is None else ())
    wanted: tuple[ListedKey, ...] = settled((*lost, *listed), current, time.time(), place.keep_seconds)
    return HeldKey(private, current.kid, wanted), wanted == listed


def _lost(path: Path, listed: tuple[ListedKey, ...], known: tuple[ListedKey, ...]) -> list[ListedKey]:
    present = {one.kid for one in listed}
    lost = [one for one in known if one.kid not in present]
    if lost:
        log.warning("a set of keys gets back what it lacked", path=str(path), key_ids=[one.kid for one in lost])
    return lost


def rotate(
    place: KeyPlace[K], *, forget: bool = False, wait_seconds: float = TURN_SECONDS
) -> tuple[HeldKey[K], HeldKey[K]]:
    """Make a new key in the place of the old one; both, old first. Raises KeyFileError.

    `forget`: nothing that earlier keys signed is accepted any longer, from the moment that a front reads the set.
    """
    if place.key.is_symlink():
        raise PrivateFileError(f"{place.key}: is a link. Name the file that it leads to.", Exit.CONFIG)
    check_folder(place.key.parent, is_private=False)
    with hold_folder(place.key.parent, wait_seconds=wait_seconds):
        remove_unfinished(place.key)
        old: HeldKey[K] = settle_key(place)
        fresh = place.generate()
        listed = ListedKey(public_jwk(fresh), iso(time.time()))
        # The order is the guarantee: a process that reads the new key finds it listed; before, it reads the old one.
        if place.set is not None:
            remove_unfinished(place.set)
            place.write_set(settled((*old.listed, listed), old.current, time.time(), place.keep_seconds))
        write_private_key(place.key, fresh)
        if forget:
            place.write_set((listed,))
        return old, settle_key(place)
