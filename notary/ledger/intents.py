"""Execution intents: what is about to be dispatched, durable before it is, and what resolves it.

An intent stays as it was written; a small table says which of them wait for a receipt. What its event and receipt will
need is kept beside it, so that a notary that follows one which died can end what was under way.
"""

import sqlite3

import msgspec

from ipc.events import AuditEvent
from ipc.messages import Approver, Terms

_INSERT = (
    "INSERT INTO intents (intent_id, trace_id, action_id, principal, dispatched_at, grant_id, provider_module,"
    " plan_hash, approval_id, grant_jws, context) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_WAITING = "SELECT intents.context FROM unresolved CROSS JOIN intents USING (seq) WHERE unresolved.intent_id = ?"


class OpenIntent(msgspec.Struct, frozen=True):
    """A dispatch whose end is not known yet. `event` is its event as far as it was known then."""

    intent_id: str
    grant_id: str
    started_at: str
    """UTC, milliseconds, `Z`."""
    event: AuditEvent
    terms: Terms
    has_budget: bool
    approver: Approver | None
    front_id: str = ""
    """Which front opened it: that one alone may end it."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(OpenIntent).decode


def write(connection: sqlite3.Connection, intent: OpenIntent, grant: str) -> None:
    """Write an intent. Raises sqlite3.IntegrityError for an id that was used."""
    event, approver = intent.event, intent.approver
    seq = connection.execute(
        _INSERT,
        (
            intent.intent_id, event.trace_id, event.action_id, event.principal, intent.started_at, intent.grant_id,
            intent.terms.module_digest, intent.terms.plan_hash, None if approver is None else approver.approval_id,
            grant, _encode(intent),
        ),
    ).lastrowid  # fmt: skip
    connection.execute("INSERT INTO unresolved (intent_id, seq) VALUES (?, ?)", (intent.intent_id, seq))


def is_known(connection: sqlite3.Connection, intent_id: str) -> bool:
    """True for the id of any intent that was ever opened."""
    return connection.execute("SELECT 1 FROM intents WHERE intent_id = ?", (intent_id,)).fetchone() is not None


def resolve(connection: sqlite3.Connection, intent_id: str) -> bool:
    """Take an intent from those that wait. False when it does not wait."""
    return connection.execute("DELETE FROM unresolved WHERE intent_id = ?", (intent_id,)).rowcount == 1


def waiting(connection: sqlite3.Connection, intent_id: str) -> OpenIntent | None:
    """An intent that waits, as it was written; None for any other, and for one from before contexts were kept."""
    row = connection.execute(_WAITING, (intent_id,)).fetchone()
    return None if row is None or row[0] is None else _decode(row[0])
