"""A log that a test grows, forks and signs by itself: what witnesses are asked to cosign. Shares no tree with ours."""

from base64 import b64encode
from dataclasses import dataclass, field
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.keys.verifier_keys import VerifierKey
from notary.tree.notes import signed
from tests.support.naive_tree import naive_consistency, naive_root


@dataclass
class PlayedLog:
    """Leaves, and the key that signs what they make."""

    origin: str = "log.example/a"
    leaves: list[bytes] = field(default_factory=list)
    seed: int = 3

    @property
    def private(self) -> Ed25519PrivateKey:
        """Its key."""
        return Ed25519PrivateKey.from_private_bytes(bytes([self.seed]) * 32)

    @property
    def key(self) -> VerifierKey:
        """The key that verifies its checkpoints."""
        return VerifierKey(self.origin, 1, self.private.public_key().public_bytes_raw())

    def grown(self, count: int, word: str = "leaf") -> "PlayedLog":
        """This one with more leaves; other words make another log."""
        more = [f"{word} {number}".encode() for number in range(count)]
        return PlayedLog(self.origin, [*self.leaves, *more], self.seed)

    @property
    def size(self) -> int:
        """How many leaves."""
        return len(self.leaves)

    def note(self, root: bytes | None = None) -> str:
        """A signed checkpoint; of this root, whatever the leaves are."""
        encoded = b64encode(naive_root(self.leaves) if root is None else root).decode()
        return signed(f"{self.origin}\n{self.size}\n{encoded}\n", self.origin, self.private)

    def request(self, old_size: int, *, note: str | None = None, proof: list[bytes] | None = None) -> bytes:
        """The request to a witness to cosign it, with the proof from `old_size` on."""
        if proof is None:
            proof = naive_consistency(old_size, self.leaves) if 0 < old_size <= self.size else []
        lines = [f"old {old_size}", *(b64encode(one).decode() for one in proof), "", note or self.note()]
        return "\n".join(lines).encode()


ANOTHER_ROOT = sha256(b"another").digest()
