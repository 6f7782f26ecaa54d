"""What operators get back of evidence that proves itself: checkpoints, bundles, consistency proofs.

The rules are those of gateway_client/results.py. Nothing of it is verified here: gateway_client/notes.py, tree.py and
bundles.py do that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway_client.results import Raw


@dataclass(frozen=True, kw_only=True)
class ShownCheckpoint:
    """A signed checkpoint of the log, and what it says."""

    origin: str
    """Name of the log: the gateway's public address without its scheme."""
    size: int
    """How many entries, events and intents, it commits to."""
    root: str
    """Root of their tree (RFC 6962), base64."""
    time: str
    unresolved_intents: int
    checkpoint: str
    """The signed note itself."""
    keys: tuple[str, ...] = ()
    """Verifier keys of all that have signed checkpoints, the one in use first. To be compared with those you kept."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ProvenLeaf:
    """One entry of the log, and its way to the root. `kind`: event or intent."""

    kind: str
    index: int
    bytes: str
    """The entry as it was hashed, base64."""
    proof: tuple[str, ...]
    """Inclusion proof (RFC 6962 §2.1.1): hashes from the leaf up, base64."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class BundleKeys:
    """Keys for convenience. The author of a bundle writes them too: verification never uses them."""

    checkpoints: tuple[str, ...] = ()
    receipts: Mapping[str, Any] | None = None
    witnesses: tuple[str, ...] = ()
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The evidence of one call, or of one event. `raw` is what is kept as a file."""

    bundle_version: int
    origin: str
    receipt: str | None
    """The receipt's stored bytes, base64; None where there is none."""
    leaves: tuple[ProvenLeaf, ...]
    checkpoint: str
    """The signed note that the proofs lead to."""
    keys: BundleKeys | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Consistency:
    """Proof that the log of `checkpoint` begins with its first `old_size` entries."""

    old_size: int
    proof: tuple[str, ...]
    """Consistency proof (RFC 6962 §2.1.2), base64."""
    checkpoint: str
    """The signed note of the later size."""
    raw: Raw = field(repr=False)
