"""The answer about a call that waits for a person: its hold, and the line by which people know the call."""

from frontend.calls.executed import AwaitedApproval
from frontend.calls.record import CallRecord
from ipc.backends.store import ApprovalRecord
from ipc.evidence.kept_values import summary_of


def awaited(record: CallRecord, held: ApprovalRecord, *, is_replayed: bool = False) -> AwaitedApproval:
    """The outcome of this call; `is_replayed`: the same call was made before under its key."""
    return AwaitedApproval(held, record.trace_id, is_replayed, summary_of(record.kept))
