"""Kept values of a bundle, checked against what its event commits to (docs/evidence.md of the gateway, "Kept values").

Guarantees that each commitment has its value, or an event in the log that erased it.
"""

import base64
import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from gateway_client.contract.evidence import Bundle, KeptProof, ProvenLeaf
from gateway_client.errors import EvidenceRefused
from gateway_client.evidence.canonical import canonical_bytes, sha256
from gateway_client.evidence.notes import Checkpoint
from gateway_client.evidence.proven_records import record_in
from gateway_client.evidence.records import Record

_ERASED: Final = "EvidenceErased"
_SALT: Final = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]", re.ASCII)
"""16 bytes in base64url, in the one form of theirs."""
_COMMITMENT: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_MAX_SAFE_INTEGER: Final = 2**53 - 1


class ProvenValues(NamedTuple):
    """Values by JSON pointer, and the pointers of the erased ones."""

    values: dict[str, Any]
    erased: tuple[str, ...]


def check_kept(event: Record, bundle: Bundle, log: Checkpoint) -> ProvenValues:
    """Check the values of a bundle against its event, which is proven. Raises EvidenceRefused.

    Reasons: kept_value for one that the event does not commit to, missing for a commitment without value and erasure.
    """
    committed = _commitments_of(event)
    for one in bundle.kept:
        if not isinstance(one.value, str | int | float) or not _SALT.fullmatch(one.salt):
            raise EvidenceRefused("bundle_malformed", "A kept value has another type, or no salt of 16 bytes.")
    erased = _erased_by(bundle.erasures, log)
    values: dict[str, Any] = {}
    for one in bundle.kept:
        if one.pointer in values or committed.get(one.pointer) != _commitment(one):
            raise EvidenceRefused("kept_value", f"The event does not commit to the kept value {one.pointer!a}.")
        values[one.pointer] = one.value
    for pointer, commitment in committed.items():
        if pointer not in values and commitment not in erased:
            raise EvidenceRefused("missing", f"The kept value {pointer!a} is missing, and no event erased it.")
    return ProvenValues(values, tuple(pointer for pointer in committed if pointer not in values))


def _commitments_of(event: Record) -> dict[str, str]:
    committed = json.loads(event.exact("kept"))
    if committed is None:
        return {}
    if not isinstance(committed, dict) or not all(_is_commitment(one) for one in committed.values()):
        raise event.malformed("has commitments in another form")
    return committed


def _is_commitment(text: object) -> bool:
    return isinstance(text, str) and _COMMITMENT.fullmatch(text) is not None


def _commitment(one: KeptProof) -> str | None:
    """The hash that commits to a value; None for a value without a canonical form."""
    value = one.value
    try:
        # A number is a double in RFC 8785, and 1e16 is written as an integer.
        is_large = type(value) is int and abs(value) > _MAX_SAFE_INTEGER
        data = canonical_bytes(float(value) if is_large else value)
    except (ValueError, OverflowError):
        return None
    return sha256(base64.urlsafe_b64decode(one.salt + "==") + data)


def _erased_by(erasures: Iterable[ProvenLeaf], log: Checkpoint) -> frozenset[str]:
    """The commitments whose values these events erased. Raises EvidenceRefused.

    One may come before the event of the call: values of a call whose outcome is unknown are erased, too.
    """
    erased: set[str] = set()
    for one in erasures:
        if one.kind != "event":
            raise EvidenceRefused("leaves", "An erasure in the bundle is no event.")
        event = record_in(one, log)
        change = event.inner("change") if event.required("event_type") == _ERASED else None
        listed = None if change is None else json.loads(change.exact("commitments"))
        if not isinstance(listed, list) or not all(_is_commitment(each) for each in listed):
            raise event.malformed("did not erase kept values")
        erased.update(listed)
    return frozenset(erased)
