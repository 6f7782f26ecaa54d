"""Counts of calls for operators, as they are when they are asked for."""

from typing import Final

from contract.activity import AuditSummary
from ipc.operations.activity import SummariseAudit
from notary.ledger.activity import count_slice
from notary.reading.activity import summary_of
from notary.units.performing import performs
from notary.units.transaction import Transaction

COUNTED_AT_ONCE: Final = 5000
"""Events that an answer counts before it is made: many more than come within the second between two countings."""


@performs(SummariseAudit, settles=True, is_paced=True)
def summarise_audit(unit: Transaction, asked: SummariseAudit) -> AuditSummary:
    """See SummariseAudit."""
    unit.settle()
    counted = count_slice(unit.connection, COUNTED_AT_ONCE, is_file=not unit.state.database.is_shared)
    return summary_of(
        unit.connection, asked.first_hour, asked.end_hour, asked.step_hours,
        is_complete=counted.events < COUNTED_AT_ONCE,
    )  # fmt: skip
