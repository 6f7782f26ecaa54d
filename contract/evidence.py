"""Evidence that proves itself: checkpoints, bundles, consistency proofs (docs/evidence.md)."""

from collections.abc import Mapping
from typing import Any, Literal

from .noun import LEFT_OUT, Listed, NeverNull, Noun


class ShownCheckpoint(Noun, frozen=True, kw_only=True):
    """A signed checkpoint of the log (docs/evidence.md, "Checkpoints")."""

    origin: str
    """Name of the log: the gateway's public address without its scheme."""
    size: int
    """How many leaves, events and intents, it commits to."""
    root: str
    """Root of their tree (RFC 6962), base64."""
    time: str
    """When it was signed."""
    unresolved_intents: int
    """How many intents had no end then."""
    checkpoint: str
    """The signed note itself (C2SP tlog-checkpoint)."""
    keys: Listed[str]
    """Verifier keys (C2SP signed-note) of all that have signed checkpoints, the one in use first."""


class ProvenLeaf(Noun, frozen=True, kw_only=True):
    """One leaf, and its way to the root."""

    kind: Literal["event", "intent"]
    index: int
    """Its place in the log, from 0."""
    bytes: str
    """The leaf as it was hashed, base64."""
    proof: tuple[str, ...]
    """Inclusion proof (RFC 6962 §2.1.1): hashes from the leaf up, base64."""


class KeptProof(Noun, frozen=True, kw_only=True):
    """A value that the event commits to: its commitment is the hash of the salt and of the value's canonical form."""

    pointer: str
    """JSON pointer into the request."""
    value: Any
    """The text, number or flag; of a masked value the shown form."""
    salt: str
    """16 bytes, base64url without padding."""


class BundleKeys(Noun, frozen=True, kw_only=True):
    """Keys for convenience: a verifier takes those that it knew before."""

    checkpoints: Listed[str]
    """Verifier keys (C2SP signed-note)."""
    receipts: NeverNull[Mapping[str, Any]]
    """A JWKS."""
    witnesses: tuple[str, ...] = ()


class Bundle(Noun, frozen=True, kw_only=True):
    """The evidence of one call, or of one event, that can be verified without the gateway (docs/evidence.md)."""

    bundle_version: Literal[1]
    origin: str
    receipt: str | None
    """The receipt's stored bytes, base64; null without one."""
    leaves: tuple[ProvenLeaf, ...]
    checkpoint: str
    """The signed note that the proofs lead to."""
    keys: NeverNull[BundleKeys]
    kept: Listed[KeptProof] = LEFT_OUT
    """The values that the event commits to, but the erased ones. Absent where it commits to none."""
    erasures: Listed[ProvenLeaf] = LEFT_OUT
    """The events that erased the other ones. Absent where none is erased."""


class Consistency(Noun, frozen=True, kw_only=True):
    """Proof that the log of a checkpoint begins with the log as it was at an earlier size."""

    old_size: int
    proof: tuple[str, ...]
    """Consistency proof (RFC 6962 §2.1.2), base64."""
    checkpoint: str
    """The signed note of the later size."""
