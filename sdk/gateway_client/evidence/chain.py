"""The chain of audit events verified offline, from an export: each event names the hash of the one before it.

Written from docs/evidence.md of the gateway. An export can show that nothing inside it was changed, left out or put in
another order; that nothing is missing at its ends can be seen only from `first_prev_hash` and `head_hash`, held against
what was kept elsewhere. A filtered export is no chain. Constant memory.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway_client.errors import ProtocolViolation
from gateway_client.evidence.canonical import canonical_bytes, sha256
from gateway_client.results import AuditEvent
from gateway_client.wire.decoding import parse_json

BESIDE_CHAIN = ("kept_state", "kept_values")
"""Members of a shown event that are no part of what is hashed."""
_HASH = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
Exported = AuditEvent | Mapping[str, Any] | str | bytes


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The result of a walk along an export.

    `broken_at`: the event whose `prev_hash` is not the hash of the event before it, or which is malformed; `reason`
    says which. `first_prev_hash`: the hash in the oldest event, None in the first event ever written.
    `head_hash`: that of the newest event; both are None for an empty export. In a broken chain they cover the part
    before the break.
    """

    intact: bool
    events_checked: int
    broken_at: str | None = None
    reason: str | None = None
    first_prev_hash: str | None = None
    head_hash: str | None = None


@dataclass(frozen=True, slots=True)
class _Link:
    event_id: str
    prev_hash: str | None
    hash: str


def verify_chain(events: Iterable[Exported], *, newest_first: bool = False) -> ExportReport:
    """Walk an export: one event an item, in the order of the ledger, or backwards as `iter_events` gives them.

    A text or bytes item is hashed as it stands, line end aside; anything else, and an event with its kept values, in
    its canonical form, which is the form that the ledger keeps.
    """
    oldest: _Link | None = None
    newest: _Link | None = None
    count = 0
    broken: tuple[str | None, str] | None = None
    for item in events:
        try:
            link = _link(item)
        except ValueError as error:
            broken = (None, f"event {count + 1} of the export {error}")
            break
        before, after = (link, oldest) if newest_first else (newest, link)
        if before is not None and after is not None and after.prev_hash != before.hash:
            broken = (after.event_id, f"its prev_hash is not the hash of {before.event_id}")
            break
        if newest_first:
            oldest, newest = link, newest or link
        else:
            oldest, newest = oldest or link, link
        count += 1
    return ExportReport(
        intact=broken is None,
        events_checked=count,
        broken_at=broken[0] if broken else None,
        reason=broken[1] if broken else None,
        first_prev_hash=oldest.prev_hash if oldest else None,
        head_hash=newest.hash if newest else None,
    )


def chained(event: Mapping[str, Any]) -> bytes:
    """The bytes that the ledger keeps of an event, given as it is shown: without its kept values."""
    return canonical_bytes({name: value for name, value in event.items() if name not in BESIDE_CHAIN})


def _link(item: Exported) -> _Link:
    """Raises ValueError with what is wrong, as the end of a sentence."""
    fields: Any = item.raw if isinstance(item, AuditEvent) else item
    if isinstance(fields, str | bytes):
        try:
            stored = (fields.encode() if isinstance(fields, str) else fields).rstrip(b"\r\n")
            fields = parse_json(stored, "it")
            if isinstance(fields, Mapping) and not fields.keys().isdisjoint(BESIDE_CHAIN):
                stored = chained(fields)
        except (ProtocolViolation, UnicodeEncodeError):
            raise ValueError("is not JSON") from None
    elif isinstance(fields, Mapping):
        stored = chained(fields)
    else:
        raise ValueError("is not an event")
    if not isinstance(fields, Mapping) or not isinstance(fields.get("event_id"), str) or "prev_hash" not in fields:
        raise ValueError("is not an event")
    previous = fields["prev_hash"]
    if previous is not None and not (isinstance(previous, str) and _HASH.fullmatch(previous)):
        raise ValueError("has no hash as its prev_hash")
    return _Link(fields["event_id"], previous, sha256(stored))
