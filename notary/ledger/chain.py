"""The chain of audit events: the bytes that are stored and hashed, and how each is linked to the one before.

An event is encoded once, with a gap where `prev_hash` goes; the gap is filled inside the transaction that stores it.
The stored bytes are the hashed bytes.
"""

from functools import lru_cache

import msgspec

from ipc.evidence.events import AuditEvent
from ipc.process.clock import parse_iso
from ipc.texts.canonical import NotCanonical, durable_bytes, is_plain, sha256_hex

_GAP = b'"prev_hash":null'
_encode = msgspec.json.Encoder(order="sorted").encode


class OpenEvent(msgspec.Struct, frozen=True):
    """The canonical bytes of an event around the value of its `prev_hash`."""

    before: bytes
    after: bytes

    def closed(self, prev_hash: str | None) -> bytes:
        """The bytes to store, linked to the event before."""
        return self.before + (b"null" if prev_hash is None else b'"' + prev_hash.encode() + b'"') + self.after


def open_event(event: AuditEvent) -> OpenEvent:
    """Encode an event up to its link. Raises NotCanonical."""
    free = (event.runtime, event.budgets_before, event.budgets_after, event.change, event.signing_keys, event.kept)
    linked = msgspec.structs.replace(event, prev_hash=None)
    try:
        encoded = _encode(linked) if all(map(is_plain, free)) else durable_bytes(msgspec.to_builtins(linked))
    except (UnicodeEncodeError, RecursionError) as error:
        raise NotCanonical(str(error)) from None
    # A quotation mark inside a text is escaped, so that no text can hold the gap; a name in a dict could.
    parts = encoded.split(_GAP)
    if len(parts) != 2:
        raise NotCanonical("an event must not hold another prev_hash")
    return OpenEvent(parts[0] + _GAP[:-4], parts[1])


def event_hash(stored: bytes) -> str:
    """The hash of a stored event, which the next one carries as `prev_hash`."""
    return sha256_hex(stored)


_FRACTIONS = {f"{number:03d}Z": number for number in range(1000)}


@lru_cache(maxsize=64)
def _second(text: str) -> int:
    if len(text) != 20 or text[19] != ".":
        raise ValueError
    return round(parse_iso(text[:19] + "Z") * 1000)


def milliseconds(timestamp: str) -> int:
    """An event's `timestamp` as milliseconds since the Unix epoch. Raises ValueError for any other form of time."""
    try:
        return _second(timestamp[:20]) + _FRACTIONS[timestamp[20:]]
    except (KeyError, ValueError):
        raise ValueError("not a time of the form 2026-11-21T11:12:13.123Z") from None
