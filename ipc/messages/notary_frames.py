"""Front and notary: numbered operations one way; answers, and what every front must know, the other way.

What each operation answers: ipc/messages/recording.py, ipc/messages/looking.py.
"""

import msgspec

from ipc.messages.looking import (
    DueHolds,
    GetHold,
    ListHolds,
    ListUnresolved,
    OrphanedHolds,
    QueryEvents,
    ReadBudget,
    ReadEpoch,
    ReadLedger,
    ReadStore,
    ShowReceipt,
    TraceOfApproval,
    UnsettledHolds,
)
from ipc.messages.message import Message
from ipc.messages.recording import (
    Abandon,
    CheckKeys,
    ClaimDeliveries,
    Close,
    Enter,
    FollowKeys,
    GiveUpDeliveries,
    Hold,
    Issue,
    MoveHold,
    NextDelivery,
    Note,
    Open,
    Refuse,
    Revoke,
    SettleDelivery,
)

Operations = (
    Enter | Open | Close | Abandon | Refuse | Hold | Issue | Note | Revoke | MoveHold | ReadBudget | ReadEpoch | GetHold
    | ListHolds | DueHolds | OrphanedHolds | UnsettledHolds | ReadStore | ReadLedger | ShowReceipt | TraceOfApproval
    | ListUnresolved | QueryEvents | ClaimDeliveries | SettleDelivery | GiveUpDeliveries | NextDelivery | CheckKeys
    | FollowKeys
)  # fmt: skip


class Asked(Message, frozen=True):
    """One operation and its number."""

    number: int
    operation: Operations


class Answered(Message, frozen=True):
    """`value` is the operation's answer; with `problem` there is none: unavailable, refused, clock or fault.

    `part` names what could not be written or read: store, budget, approvals, ledger or keys. `cause` is for the log.
    """

    number: int
    value: msgspec.Raw
    problem: str | None = None
    part: str | None = None
    cause: str | None = None


class Woken(Message, frozen=True):
    """Endpoints that deliveries of this front were written for."""

    endpoints: tuple[str, ...]


class LeaseKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A public key that leases verify with. `over_at`: from when on it does not; None for the one that signs."""

    kid: str
    x: str
    y: str
    over_at: float | None = None


class InForce(Message, frozen=True):
    """What every front must know: sent first, and again before the first answer that depends on a change."""

    epoch: int
    newest_evidence: float
    """Unix seconds; no clock may be before it."""
    lease_keys: tuple[LeaseKey, ...]
    lease_jwks: str
    """JSON text, as published."""
    receipt_jwks: str
    grant_jwks: str
    signing_keys: dict[str, str]
    """Purpose -> id of the key that signs."""


FrontToNotary = Asked
NotaryToFront = InForce | Answered | Woken
