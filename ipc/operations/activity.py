"""The operation that reads counts of calls by time."""

from contract.activity import AuditSummary
from ipc.operations.operation import FrontOperation


class SummariseAudit(FrontOperation[AuditSummary], frozen=True):
    """Read counts of calls in steps of whole hours. Hours are those since the Unix epoch."""

    first_hour: int
    end_hour: int
    """The hour after the last one."""
    step_hours: int
    asker: str = ""
