"""Execution intents: records of calls, durable before dispatch, and their resolution.

An intent is never changed; a small table lists the intents that wait for a receipt. The fields for event and receipt
are kept with it, so that the next notary can end calls that were under way.
"""

from collections.abc import Collection

import msgspec

from ipc.caps import CapReservation
from ipc.evidence.events import AuditEvent
from ipc.operations.calls import Approver, GrantTerms
from notary.database import OpenTransaction
from notary.ledger import sealed_intents
from notary.ledger.page_ring import IntentRow

INSERT_INTENT = (
    "INSERT INTO intents (intent_id, trace_id, action_id, principal, dispatched_at, grant_id, provider_module,"
    " plan_hash, approval_id, grant_jws, context, leaf) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_WAITING = "SELECT intents.context FROM unresolved CROSS JOIN intents USING (seq) WHERE unresolved.intent_id = ?"
_WAITING_OF_ALL = (
    "SELECT intents.context FROM unresolved CROSS JOIN intents USING (seq) ORDER BY intents.seq DESC LIMIT ?"
)
MAX_WAITING = 1000
MAX_WITHOUT_END = 1000
_WITHOUT_END = (
    "SELECT intents.context FROM unresolved CROSS JOIN intents USING (seq) WHERE intents.principal = ?"
    " ORDER BY intents.seq DESC LIMIT ?"
)
_IS_KNOWN = f"SELECT 1 FROM intents WHERE intent_id = ? UNION ALL {sealed_intents.KNOWN} LIMIT 1"  # noqa: S608 - a constant
_OF_TABLE = "SELECT intent_id FROM intents WHERE intent_id IN (SELECT value FROM json_each(?))"
_KNOWN = f"{_OF_TABLE} UNION ALL {sealed_intents.KNOWN_AMONG}"


class StandingWord(msgspec.Struct, frozen=True):
    """The standing approval by which a call runs, and the text that its operator signed."""

    standing_id: str
    signature: str


class OpenIntent(msgspec.Struct, frozen=True):
    """A dispatch whose end is not known yet. `event` is its event as far as it was known then."""

    intent_id: str
    grant_id: str
    started_at: str
    """UTC, milliseconds, `Z`."""
    event: AuditEvent
    terms: GrantTerms
    has_budget: bool
    approver: Approver | None
    front_id: str = ""
    """Which front opened it: that one alone may withdraw it."""
    number: int = 0
    """The number of the front's Open."""
    worker_id: str = ""
    """Which worker was named: that one alone may tell how it ended."""
    minute: int | None = None
    """Where its call is counted for its principal; None where it is not, or was when the call was held."""
    caps: tuple[CapReservation, ...] = ()
    """The amounts of its call that caps count."""
    keyed: bool | None = None
    """Given for a call that was made under an `Idempotency-Key`: True if its output is kept."""
    standing: StandingWord | None = None
    """Given for a call that would have been held, and runs by a standing approval."""

    @property
    def call_id(self) -> str:
        """The id under which its end is kept for calls that repeat it: that of its approval if it was held."""
        return self.intent_id if self.approver is None else self.approver.approval_id


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(OpenIntent).decode


def row_of(intent: OpenIntent, grant: str) -> IntentRow:
    """An intent as it is stored. Raises ValueError for the event of a call that does not say whose it is."""
    event, approver = intent.event, intent.approver
    if event.trace_id is None or event.action_id is None or event.principal is None:
        raise ValueError("an intent without trace, action or principal")
    return (
        intent.intent_id, event.trace_id, event.action_id, event.principal, intent.started_at, intent.grant_id,
        intent.terms.module_digest, intent.terms.plan_hash, None if approver is None else approver.approval_id,
        grant, _encode(intent),
    )  # fmt: skip


def is_known(connection: OpenTransaction, intent_id: str) -> bool:
    """True for the id of any intent that is in the table, or in a sealed segment."""
    return connection.execute(_IS_KNOWN, (intent_id, intent_id, intent_id)).fetchone() is not None


def without_end(connection: OpenTransaction, principal: str) -> list[OpenIntent]:
    """Intents of a principal that wait, the newest MAX_WITHOUT_END first; without those from before contexts were
    kept."""
    rows = connection.execute(_WITHOUT_END, (principal, MAX_WITHOUT_END))
    return [_decode(row[0]) for row in rows if row[0] is not None]


def known_among(connection: OpenTransaction, intent_ids: Collection[str]) -> set[str]:
    """Those of these ids that are in the table, or in a sealed segment."""
    ids = msgspec.json.encode(list(intent_ids)).decode()
    rows = connection.execute(_KNOWN, (ids, ids))
    return {row[0] for row in rows}


def waiting(connection: OpenTransaction, intent_id: str) -> OpenIntent | None:
    """An intent that waits, as it was written; None for any other, and for one from before contexts were kept."""
    row = connection.execute(_WAITING, (intent_id,)).fetchone()
    return None if row is None or row[0] is None else _decode(row[0])


def waiting_contexts(connection: OpenTransaction) -> list[OpenIntent]:
    """Intents that wait, newest first, at most MAX_WAITING."""
    rows = connection.execute(_WAITING_OF_ALL, (MAX_WAITING,))
    return [_decode(row[0]) for row in rows if row[0] is not None]
