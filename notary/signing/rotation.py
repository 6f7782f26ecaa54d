"""The signing keys in force: read from the disk together, put in force one by one, each change with its event.

A key that was made in the place of an old one (`gateway keys rotate`, or a person) needs no restart: the notary looks
at its key files once a second, and with every reload. A key is in force only once its event is durable; a file that
can't be used changes nothing. Never makes a key.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.messages.notary_frames import FrontFacts
from ipc.process.logs import log
from ipc.process.private_files import PrivateFileError, look_at
from ipc.settings import Settings
from notary.signing.grants import GrantSigner
from notary.signing.keys import HeldKey, K, KeyPlace, KeyPlaces, key_places, make_first, open_key
from notary.signing.keysets import ListedKey
from notary.signing.leases import lease_keys
from notary.signing.receipt_keys import ReceiptSigner

WAIT_SECONDS = 1.0
"""For a rotation that is under way in the folder of a key; what it leaves is found at the next look."""

Look = tuple[tuple[int, ...] | None, ...]


class KeyFiles(NamedTuple):
    """The keys in their files. `look` is the state of the files when they were read; empty when one of them has to be
    read again."""

    look: Look
    lease: HeldKey[EllipticCurvePrivateKey]
    grant: HeldKey[EllipticCurvePrivateKey]
    receipt: HeldKey[Ed25519PrivateKey]
    checkpoint: HeldKey[Ed25519PrivateKey]

    def kids(self) -> dict[str, str]:
        """Purpose -> id of the key."""
        purposes = ("lease", "grant", "receipt", "checkpoint")
        return {purpose: getattr(self, purpose).kid for purpose in purposes}


class KeyChange(NamedTuple):
    """A key that is followed by another."""

    purpose: str
    key_id: str
    previous_key_id: str


def places_of(settings: Settings) -> KeyPlaces:
    """Where the keys of these settings lie. Raises ValueError when one is not named."""
    paths = (settings.lease_signing_key_path, settings.grant_signing_key_path, settings.receipt_signing_key_path)
    lease, grant, receipt, receipt_set = (_named(path) for path in (*paths, settings.receipt_keys_jwks_path))
    return key_places(Path(settings.state_dir), lease=lease, grant=grant, receipt=receipt, receipt_set=receipt_set)


def _tell_lost_set(places: KeyPlaces) -> None:
    """One line of the log if this gateway has run and its set of receipt keys is gone: it had the earlier keys."""
    lost, begun = places.receipt.set, places.checkpoint.set
    if lost is not None and begun is not None and os.path.lexists(begun) and not os.path.lexists(lost):
        mend = f"put {lost} back from a backup: receipts of earlier keys can't be verified without it"
        log.warning("the set of receipt keys was gone and is made anew", mend=mend)


def _named(path: str | None) -> Path:
    if path is None:
        raise ValueError("a signing key path is missing in the settings")
    return Path(path)


def _look(places: KeyPlaces) -> Look:
    """How every file is now."""
    return tuple(look_at(path) for place in places.each() for path in (place.key, place.set) if path is not None)


@dataclass(slots=True)
class Signers:
    """The signing keys in force; follows their files."""

    places: KeyPlaces
    keys: KeyFiles
    """In force."""
    grants: GrantSigner
    receipts: ReceiptSigner
    version: int = 0
    """Rises with each change."""
    _complaint: str = ""
    _times: int = 0
    _seen: Look = field(default=())

    @classmethod
    def open(cls, settings: Settings) -> "Signers":
        """Read all keys and put their sets in order. Raises KeyFileError, ValueError."""
        places = places_of(settings)
        _tell_lost_set(places)
        make_first(places.checkpoint)
        look = _look(places)
        keys = KeyFiles(
            look, open_key(places.lease), open_key(places.grant), open_key(places.receipt), open_key(places.checkpoint)
        )
        return cls(places, keys, GrantSigner(keys.grant.private), ReceiptSigner(keys.receipt), _seen=look)

    def has_news(self) -> bool:
        """The files are not as they were at the last look that was put in force."""
        return _look(self.places) != self.keys.look

    def read(self) -> tuple[KeyFiles, list[str]]:
        """Read the keys; the one in force replaces a key that can't be used. Also return a sentence for each such key.

        Blocks for WAIT_SECONDS a key at most.
        """
        look = _look(self.places)
        problems: list[str] = []
        lease = _opened(self.places.lease, problems) or self.keys.lease
        grant = _opened(self.places.grant, problems) or self.keys.grant
        receipt = _opened(self.places.receipt, problems, self.keys.receipt.listed) or self.keys.receipt
        checkpoint = _opened(self.places.checkpoint, problems, self.keys.checkpoint.listed) or self.keys.checkpoint
        return KeyFiles(() if problems else look, lease, grant, receipt, checkpoint), problems

    def changes(self, keys: KeyFiles) -> list[KeyChange]:
        """Keys that these would follow."""
        before, now = self.keys.kids(), keys.kids()
        return [KeyChange(name, now[name], before[name]) for name in now if now[name] != before[name]]

    def use(self, keys: KeyFiles) -> None:
        """Sign with these from now on: their events are durable."""
        for change in self.changes(keys):
            told: dict[str, Any] = {"key_purpose": change.purpose, "key_id": change.key_id}
            log.info("another key signs from now on", **told, previous_key_id=change.previous_key_id)
        if keys.grant.kid != self.keys.grant.kid:
            self.grants.use(keys.grant.private)
        self.receipts.use(keys.receipt)
        if keys[1:] != self.keys[1:]:
            self.version += 1
        self.keys = keys

    def complain(self, problems: list[str]) -> None:
        """Say it at the second time: a file that is being copied is half there at the first. And say it once."""
        problem = "; ".join(problems)
        self._times = self._times + 1 if problem == self._complaint else 1
        self._complaint = problem
        if problem and self._times == 2:
            log.error("signing keys can't be used as they lie; those before stay in force", problem=problem)

    def in_force(self, epoch: int, newest_evidence: float, revoked: tuple[str, ...] = ()) -> FrontFacts:
        """Epoch, public keys and revocations, for fronts."""
        keys = self.keys
        encode: Callable[[Any], str] = lambda value: msgspec.json.encode(value).decode()  # noqa: E731
        return FrontFacts(
            epoch=epoch,
            newest_evidence=newest_evidence,
            lease_keys=lease_keys(keys.lease),
            lease_jwks=encode(keys.lease.jwks()),
            receipt_jwks=encode(keys.receipt.jwks()),
            signing_keys=keys.kids(),
            revoked=revoked,
        )


def _opened(place: KeyPlace[K], problems: list[str], known: tuple[ListedKey, ...] = ()) -> HeldKey[K] | None:
    try:
        return open_key(place, known, wait_seconds=WAIT_SECONDS)
    except PrivateFileError as error:
        problems.append(str(error))
        return None
