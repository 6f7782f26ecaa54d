"""Operations with which a front has witnesses cosign the log."""

import msgspec

from ipc.operations.operation import FrontOperation


class ToCosign(msgspec.Struct, frozen=True):
    """`proof` (base64) shows that the log of `size` continues that of `old_size` (RFC 6962 §2.1.2). It is empty where
    `old_size` is more than the log has."""

    old_size: int
    size: int
    proof: tuple[str, ...]
    note: str


class NextCheckpoint(FrontOperation[ToCosign | None], frozen=True):
    """Read the newest signed checkpoint for a witness; None when this witness has cosigned it."""

    witness: str
    """Its name in the configuration."""
    old_size: int | None = None
    """The size that the witness says it knows; None: the size that it cosigned last."""


class Cosign(FrontOperation[str | None], frozen=True):
    """Keep the signature line of a witness that verifies under its configured key, with the note of the checkpoint of
    this size. The answer is None then, else a sentence that says why no line was kept."""

    witness: str
    size: int
    lines: str


class NoteTrouble(FrontOperation[None], frozen=True):
    """Note, in memory alone, why a witness has not cosigned: a sentence for the status."""

    witness: str
    problem: str


class WitnessStatus(msgspec.Struct, frozen=True):
    """The largest checkpoint that a witness has cosigned, when it did (ISO 8601), and why not a larger one."""

    name: str
    size: int | None
    time: str | None
    problem: str | None


class WitnessedCheckpoint(msgspec.Struct, frozen=True):
    """The last checkpoint that was signed. `root` is base64, `time` ISO 8601."""

    origin: str
    size: int
    root: str
    time: str
    witnesses: tuple[WitnessStatus, ...]
