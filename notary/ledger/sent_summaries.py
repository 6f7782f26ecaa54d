"""The summary of a call in its notification, made of kept values when the notification is claimed.

A delivery that waits holds the template alone: a value that is erased meanwhile is in no row of the outbox, and is not
sent. Functions of a connection inside an open transaction.
"""

import json
from typing import Any, Final

import msgspec

from ipc.evidence.kept_values import summary_text
from ipc.evidence.records import Delivery
from notary.database import OpenTransaction
from notary.ledger.kept_values import key_of, stored_values
from notary.ledger.message import SUMMARY_TEMPLATE

_EVENT: Final = "SELECT bytes FROM events WHERE event_id = ?"
_MARK: Final = f'"{SUMMARY_TEMPLATE}":'
_encode = msgspec.json.Encoder(order="sorted").encode


def has_summary(delivery: Delivery) -> bool:
    """True for a delivery whose body may have a template to fill in."""
    return _MARK in delivery.payload


def with_summary(connection: OpenTransaction, delivery: Delivery) -> Delivery:
    """The same delivery with `data.summary` in the place of the template; without either, where no value is kept."""
    if not has_summary(delivery):
        return delivery
    body: dict[str, Any] = json.loads(delivery.payload)
    data: dict[str, Any] = body["data"]
    summary = _summary(connection, delivery.event_id, data.pop(SUMMARY_TEMPLATE, None))
    if summary is not None:
        data["summary"] = summary
    return msgspec.structs.replace(delivery, payload=_encode(body).decode())


def _summary(connection: OpenTransaction, event_id: str, template: str | None) -> str | None:
    row = connection.execute(_EVENT, (event_id,)).fetchone()
    if row is None:
        return None
    values = stored_values(connection, key_of(bytes(row[0])))
    known = {one.pointer: msgspec.json.decode(one.value) for one in values if one.value is not None}
    return summary_text(template, known, is_whole=len(known) == len(values)) if values else None
