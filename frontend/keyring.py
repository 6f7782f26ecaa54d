"""The signing keys in force: read from the disk together, put in force one by one, each change with its evidence.

Whoever makes another key in the place of the old one (`gateway keys rotate`, or a person) needs no restart: this front
looks at its key files once a second, and with every reload. A key is in force only once its event is durable; one that
can't be used changes nothing. Calls go on with the key that they began with. Never makes a key.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import trio
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontend.auth.keyfiles import KeyFileError, look_at
from frontend.auth.keysets import ListedKey
from frontend.auth.lease import LeaseAuthority
from frontend.auth.lease_keys import LeaseKeys
from frontend.auth.signing_keys import HeldKey, K, KeyPlace, KeyPlaces, key_places, open_key
from frontend.calls.journal import Journal
from frontend.errors import GateError
from frontend.evidence.grants import GrantSigner
from frontend.evidence.signing import ReceiptSigner
from frontend.telemetry.logs import log
from ipc.settings import Settings

WATCH_SECONDS = 1.0

Look = tuple[tuple[int, ...] | None, ...]
_readings = itertools.count(1)


class KeysRefused(Exception):
    """The key files will not do. `problems` are sentences with their places."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Keys(NamedTuple):
    """What lay in the three places. `number` counts readings; `look` is how the files were when this one began, and
    nothing when one of them has to be read again."""

    number: int
    look: Look
    lease: HeldKey[EllipticCurvePrivateKey]
    grant: HeldKey[EllipticCurvePrivateKey]
    receipt: HeldKey[Ed25519PrivateKey]

    def kids(self) -> dict[str, str]:
        """Purpose -> id of the key."""
        return {"lease": self.lease.kid, "grant": self.grant.kid, "receipt": self.receipt.kid}


def places_of(settings: Settings) -> KeyPlaces:
    """Where the keys of these settings lie. Raises ValueError when one is not named."""
    paths = (settings.lease_signing_key_path, settings.grant_signing_key_path, settings.receipt_signing_key_path)
    lease, grant, receipt, receipt_set = (_named(path) for path in (*paths, settings.receipt_keys_jwks_path))
    return key_places(Path(settings.state_dir), lease=lease, grant=grant, receipt=receipt, receipt_set=receipt_set)


def _named(path: str | None) -> Path:
    if path is None:
        raise ValueError("a signing key path is missing in the settings")
    return Path(path)


def open_keys(places: KeyPlaces) -> Keys:
    """Read all keys and put their sets in order. Raises KeyFileError."""
    number, look = next(_readings), look_at_all(places)
    return Keys(number, look, open_key(places.lease), open_key(places.grant), open_key(places.receipt))


def _opened(place: KeyPlace[K], problems: list[str], known: tuple[ListedKey, ...] = ()) -> HeldKey[K] | None:
    try:
        return open_key(place, known)
    except KeyFileError as error:
        problems.append(str(error))
        return None


def look_at_all(places: KeyPlaces) -> Look:
    """How every file is now."""
    return tuple(look_at(path) for place in places.each() for path in (place.key, place.set) if path is not None)


@dataclass(slots=True)
class Keyring:
    """Keeps the services that sign and verify in step with the files."""

    places: KeyPlaces
    keys: Keys
    """In force."""
    leases: LeaseAuthority
    grants: GrantSigner
    signer: ReceiptSigner
    journal: Journal
    _turn: trio.Lock = field(default_factory=trio.Lock)
    _complaint: str = ""
    _times: int = 0

    def prepare(self) -> Keys:
        """Read all keys; blocking. Raises KeysRefused with every problem there is."""
        keys, problems = self._read()
        if problems:
            raise KeysRefused(problems)
        return keys

    def _read(self) -> tuple[Keys, list[str]]:
        """What lies there, with what is in force in the place of what can't be used."""
        number, look = next(_readings), look_at_all(self.places)
        problems: list[str] = []
        lease = _opened(self.places.lease, problems) or self.keys.lease
        grant = _opened(self.places.grant, problems) or self.keys.grant
        receipt = _opened(self.places.receipt, problems, self.keys.receipt.listed) or self.keys.receipt
        return Keys(number, () if problems else look, lease, grant, receipt), problems

    async def put_in_force(self, keys: Keys) -> None:
        """Use these keys, unless later ones are used already. Raises GateError for a change without evidence.

        What had its evidence by then is in force; whoever calls again comes to the rest.
        """
        async with self._turn:
            if keys.number <= self.keys.number:
                return
            if (keys.lease.kid, keys.lease.listed) != (self.leases.kid, self.keys.lease.listed):
                await self._change("lease", self.leases.kid, keys.lease.kid)
                self.leases.use(LeaseKeys(keys.lease.private, keys.lease.listed))
            if keys.grant.kid != self.grants.kid:
                await self._change("grant", self.grants.kid, keys.grant.kid)
                self.grants.use(keys.grant.private)
            if (keys.receipt.kid, keys.receipt.listed) != (self.signer.kid, self.keys.receipt.listed):
                await self._change("receipt", self.signer.kid, keys.receipt.kid)
                self.signer.use(keys.receipt.private, keys.receipt.jwks())
            self.keys = keys

    async def _change(self, purpose: str, before: str, now: str) -> None:
        if now == before:
            return
        found: dict[str, Any] = {"key_purpose": purpose, "key_id": now, "previous_key_id": before}
        await self.journal.own("KeysRotated", **found)
        log.info("another key signs from now on", **found)

    async def watch(self) -> None:
        """Follow the files for as long as the front lives."""
        while True:
            await trio.sleep(WATCH_SECONDS)
            try:
                await self._follow()
            except KeysRefused as error:
                self._complain("signing keys can't be used as they lie; those before stay in force", str(error))
            except GateError as error:
                self._complain("signing keys wait for their evidence", f"{error.code}: {error.cause}")
            except Exception as error:  # a fault of ours in reading files is no reason to stop serving
                self._complain("signing keys could not be looked at", type(error).__name__, error)
            else:
                self._complaint = ""

    async def _follow(self) -> None:
        if await _in_thread(lambda: look_at_all(self.places)) == self.keys.look:
            return
        keys, problems = await _in_thread(self._read)
        await self.put_in_force(keys)  # one file that will not do holds up no other key
        if problems:
            raise KeysRefused(problems)

    def _complain(self, text: str, problem: str, error: Exception | None = None) -> None:
        """Say it at the second time: a file that is being copied is half there at the first. And say it once."""
        self._times = self._times + 1 if problem == self._complaint else 1
        self._complaint = problem
        if self._times == 2:
            log.error(text, problem=problem, exc_info=error)


async def _in_thread(read: Callable[[], Any]) -> Any:
    # A disk that does not answer holds up this one thread, and nobody waits for it but the watch.
    return await trio.to_thread.run_sync(read, abandon_on_cancel=True)
