"""Front and notary: numbered operations one way; answers, and the state that fronts must know, the other way.

The operations and the types of their answers are declared in ipc/operations/.
"""

import msgspec

from ipc.messages.message import Message
from ipc.operations.askable import AnyOfFront


class NumberedOperation(Message, frozen=True):
    """One operation and its number."""

    number: int
    operation: AnyOfFront


class Answered(Message, frozen=True):
    """`value` is the operation's answer. With a `problem` (unavailable, refused, clock or fault) it is null.

    `part` names what could not be written or read: store, budget, approvals, ledger or keys. `cause` is for the log.
    `is_begun`: the call of an Open was begun, and its intent stays unresolved.
    """

    number: int
    value: msgspec.Raw
    problem: str | None = None
    part: str | None = None
    cause: str | None = None
    is_begun: bool = False
    took_us: tuple[int, int] | None = None
    """For a call that has ended: time to write the intent, and to write receipt and event."""
    store_us: dict[str, int] | None = None
    """Requests to the key-value store (proof, debit, issue) that this operation made -> their time."""


class Begun(Message, frozen=True):
    """The intent of the Open with this number is durable, and its worker has the word."""

    number: int


class LeaseVerificationKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A public key that leases verify with. `over_at`: from when on it does not; None for the one that signs."""

    kid: str
    x: str
    y: str
    over_at: float | None = None


class FrontFacts(Message, frozen=True):
    """The epoch, keys and revoked sessions in force: sent first, and again before the first answer that depends on a
    change."""

    epoch: int
    newest_evidence: float
    """Unix seconds; no clock may be before it."""
    lease_keys: tuple[LeaseVerificationKey, ...]
    lease_jwks: str
    """JSON text, as published."""
    receipt_jwks: str
    signing_keys: dict[str, str]
    """Purpose -> id of the key that signs."""
    revoked: tuple[str, ...] = ()
    """Sessions that an operator has ended before their time."""


FrontToNotary = NumberedOperation
NotaryToFront = FrontFacts | Answered | Begun
