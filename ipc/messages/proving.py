"""Front and notary: operations that prove what the log holds, and those with which witnesses come to cosign it."""

import msgspec

from ipc.messages.operation import Operation


class ReadCheckpoint(Operation, frozen=True):
    """Answers ShownCheckpoint, of everything that was durable when it was asked."""


class Prove(Operation, frozen=True):
    """Answers the Bundle of what is named, or None when there is nothing of that name."""

    event_id: str | None = None
    intent_id: str | None = None
    receipt_id: str | None = None


class ProveConsistency(Operation, frozen=True):
    """Answers Consistency, or None when the log was never of this size."""

    old_size: int


# --------------------------------------------------------------------- witnesses


class NextCheckpoint(Operation, frozen=True):
    """What a witness is to cosign next: the newest checkpoint that was signed. Answers ToCosign, or None when this
    witness has cosigned it."""

    witness: str
    """By the name that the configuration gives it."""
    old_size: int | None = None
    """What the witness says it knows; None: what it cosigned last."""


class ToCosign(msgspec.Struct, frozen=True):
    """`proof`, base64: that the log of `size` continues that of `old_size` (RFC 6962 §2.1.2). It is empty where there
    is none, since `old_size` is more than the log has."""

    old_size: int
    size: int
    proof: tuple[str, ...]
    note: str


class Cosign(Operation, frozen=True):
    """What a witness has answered: signature lines for the checkpoint of this size. The one that holds under its
    configured key is kept with the note; answers None then, else a sentence that says why there is none."""

    witness: str
    size: int
    lines: str


class NoteTrouble(Operation, frozen=True):
    """A witness has not cosigned, for this reason: a sentence for status. Kept in memory alone. Answers None."""

    witness: str
    problem: str


class WitnessStatus(msgspec.Struct, frozen=True):
    """The largest checkpoint that a witness has cosigned, when it did (ISO 8601), and why not a larger one."""

    name: str
    size: int | None
    time: str | None
    problem: str | None


class LastCheckpoint(msgspec.Struct, frozen=True):
    """The last checkpoint that was signed. `root` is base64, `time` ISO 8601."""

    origin: str
    size: int
    root: str
    time: str
    witnesses: tuple[WitnessStatus, ...]
