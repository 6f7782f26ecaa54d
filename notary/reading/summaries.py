"""The summary of a call as its agent is shown it: its event's template, filled with the values that are kept."""

import msgspec

from ipc.evidence.events import AuditEvent
from ipc.evidence.kept_values import summary_text
from notary.database import OpenTransaction
from notary.ledger.kept_values import stored_values


def summary_in(connection: OpenTransaction, event: AuditEvent, key: str) -> str | None:
    """The summary of a call whose rows have this key. None without one, ERASED_SUMMARY unless each of its values is the
    one that the event commits to. Raises DatabaseGone."""
    if event.summary_template is None:
        return None
    rows = stored_values(connection, key)
    values = {row.pointer: msgspec.json.decode(row.value) for row in rows if row.value is not None}
    is_whole = {row.pointer: row.commitment for row in rows} == (event.kept or {})
    return summary_text(event.summary_template, values, is_whole=is_whole)
