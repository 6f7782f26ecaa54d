"""The parts of an approval that the notary reads, or writes when it ends one (ipc/approvals.py has the form)."""

import msgspec

from ipc.approvals import DecisionOutcome
from ipc.backends.store import ApprovalRecord
from ipc.caps import CapUse
from ipc.configuration.quorum import Quorum


class KeptCaller(msgspec.Struct, frozen=True):
    """The owner of the caller and the values for policy, of a plan that is skipped otherwise."""

    owner: str | None = None
    policy_input: str = "{}"
    """The values that policy was asked about, canonical JSON."""


class KeptMembers(msgspec.Struct, frozen=True):
    """The body of an approval without its plan, which is skipped and not decoded."""

    plan_hash: str | None = None
    has_budget: bool = False
    caps: tuple[CapUse, ...] = ()
    keyed: bool | None = None
    quorum: Quorum | None = None
    plan: KeptCaller = KeptCaller()


_decode = msgspec.json.Decoder(DecisionOutcome).decode
_kept = msgspec.json.Decoder(KeptMembers).decode


def decoded(text: str) -> DecisionOutcome | None:
    """An outcome from its JSON text; None for another text."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return None


def outcome_of(approval: ApprovalRecord) -> DecisionOutcome:
    """How far an approval's outcome has grown; empty when the store holds something else."""
    return decoded(approval.outcome) or DecisionOutcome()


def kept_of(approval: ApprovalRecord) -> KeptMembers:
    """The body without its plan; empty when it can't be read."""
    try:
        return _kept(approval.body)
    except (ValueError, RecursionError):
        return KeptMembers()


def ended(approval: ApprovalRecord, completed_at: str, receipt_id: str | None, error_code: str | None) -> str:
    """The outcome of an approval that ends now, JSON text."""
    outcome = msgspec.structs.replace(
        outcome_of(approval), completed_at=completed_at, receipt_id=receipt_id, error_code=error_code
    )
    return msgspec.json.encode(outcome).decode()
