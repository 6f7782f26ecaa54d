"""Witnesses of tests that live in the test's own process: keys, settings, and signature lines made on demand."""

from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.keys.verifier_keys import WITNESS, VerifierKey
from ipc.settings import EvidenceSettings, WitnessSettings
from notary.tree.checkpoint import parted
from notary.tree.cosignatures import cosign


@dataclass(frozen=True)
class Cosigner:
    """A witness that cosigns every note it is given."""

    name: str
    seed: int = 1

    @property
    def private(self) -> Ed25519PrivateKey:
        """Its key."""
        return Ed25519PrivateKey.from_private_bytes(bytes([self.seed]) * 32)

    @property
    def key(self) -> VerifierKey:
        """The verifier's key of this witness."""
        return VerifierKey(f"{self.name}.example/w", WITNESS, self.private.public_key().public_bytes_raw())

    def settings(self, **changes: Any) -> WitnessSettings:
        """As a gateway knows it."""
        return WitnessSettings(self.name, f"http://{self.name}.test", self.key.text, **changes)

    def lines(self, note: str, time: float) -> str:
        """Its cosignature of a note."""
        return cosign(parted(note)[0], self.key.name, self.private, int(time))


CITY, COAST = Cosigner("city", 1), Cosigner("coast", 2)


def witnessed_by(*cosigners: Cosigner, interval: float = 0.01, **changes: Any) -> EvidenceSettings:
    """Settings of a gateway with these witnesses."""
    return EvidenceSettings(tuple(one.settings(**changes) for one in cosigners), interval)
