"""One test vector: a bundle that was changed, the keys that an auditor trusts, and the verdict."""

from collections.abc import Callable
from typing import Any

from contrib.verify.oracle import (
    JWKS,
    LOG_KEY,
    OPERATOR_KEYS,
    ORIGIN,
    Fields,
    bundle_of,
    event_of,
    intent_of,
    operator_jkt,
    signed_receipt,
    vkey,
)

Edit = Callable[[Fields], object]


def vector(
    name: str, expected: str, edit: Edit | None = None, *, receipt: Fields | None = None, event: Fields | None = None,
    intent: Fields | None = None, stored: bytes | None = None, event_bytes: bytes | None = None,
    intent_bytes: bytes | None = None, without_intent: bool = False, origin_key: str = vkey(ORIGIN, LOG_KEY),
    trusted: Fields | None = JWKS, witness_keys: tuple[str, ...] = (), operators: tuple[str, ...] = (), **bundle: Any,
) -> Fields:  # fmt: skip
    """One vector: changes to the members of one call, to its tree and note (`bundle`), and at last to the bundle."""
    stored = signed_receipt(receipt or {}) if stored is None else stored
    event_bytes = event_of(stored, event or {}) if event_bytes is None else event_bytes
    intent_bytes = intent_of(intent or {}) if intent_bytes is None else intent_bytes
    made = bundle_of(stored, event_bytes, None if without_intent else intent_bytes, **bundle)
    if edit is not None:
        edit(made)
    keys = {"receipt_keys": trusted} if trusted is not None else {}
    witnesses = {"witness_keys": list(witness_keys)} if witness_keys else {}
    jkts = {"operator_jkts": [operator_jkt(OPERATOR_KEYS[one]) for one in operators]} if operators else {}
    return {"name": name, "origin_key": origin_key, **keys, **witnesses, **jkts, "bundle": made, "expected": expected}


def put(name: str, value: object) -> Edit:
    def edit(bundle: Fields) -> None:
        bundle[name] = value

    return edit
