"""The parts of an approval that the notary reads, or writes when it ends one (ipc/approvals.py has the form)."""

import msgspec

from ipc.approvals import Outcome
from ipc.store import ApprovalRecord


class Kept(msgspec.Struct, frozen=True):
    """The body of an approval without its plan, which is skipped and not decoded."""

    plan_hash: str | None = None
    has_budget: bool = False


_decode = msgspec.json.Decoder(Outcome).decode
_kept = msgspec.json.Decoder(Kept).decode


def decoded(text: str) -> Outcome | None:
    """An outcome from its JSON text; None for another text."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return None


def outcome_of(approval: ApprovalRecord) -> Outcome:
    """How far an approval's outcome has grown; empty when the store holds something else."""
    return decoded(approval.outcome) or Outcome()


def kept_of(approval: ApprovalRecord) -> Kept:
    """The body without its plan; empty when it can't be read."""
    try:
        return _kept(approval.body)
    except (ValueError, RecursionError):
        return Kept()


def ended(approval: ApprovalRecord, completed_at: str, receipt_id: str | None, error_code: str | None) -> str:
    """The outcome of an approval that ends now, JSON text."""
    outcome = msgspec.structs.replace(
        outcome_of(approval), completed_at=completed_at, receipt_id=receipt_id, error_code=error_code
    )
    return msgspec.json.encode(outcome).decode()
