"""Receipts: what came of a dispatch, in a form that a stranger can check against the published keys.

Guarantees that every field but those named in NOT_SIGNED is under the signature, and that a receipt can be built from
whatever a provider returned. Field names are those of docs/contract.md, "Receipt".
"""

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from ipc.canonical import NotCanonical, canonical_bytes, durable_bytes, sha256_hex


class Receipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """As stored and as shown, `signature_status` aside, which is found out anew each time it is shown."""

    receipt_id: str
    grant_id: str
    provider_module_digest: str
    provider_receipt: dict[str, Any]
    """What the provider returned. See `build_receipt` for what is no object or has no canonical form."""
    normalized_result: dict[str, Any]
    verification_outcome: dict[str, Any]
    effect_evidence: list[Any]
    result_hash: str
    receipt_signature: str | UnsetType = UNSET
    """Hex; absent in receipts from before signing was enabled."""
    signing_key_id: str | UnsetType = UNSET
    started_at: str
    finished_at: str
    failure_class: str | None = None

    @cached_property
    def stored(self) -> bytes:
        """The bytes to store: canonical JSON. Raises NotCanonical. A copy with other fields makes its own."""
        return canonical_bytes(receipt_fields(self))


NOT_SIGNED = frozenset({"result_hash", "receipt_signature", "signing_key_id", "signature_status"})
"""docs/decisions.md, "Audit, receipts, intents"."""
_FIELDS = Receipt.__struct_fields__
_SIGNED_FIELDS = tuple(name for name in _FIELDS if name not in NOT_SIGNED)
_SIGNED_BEFORE = tuple(name for name in _SIGNED_FIELDS if name < "receipt_signature")
_SIGNED_AFTER = tuple(name for name in _SIGNED_FIELDS if name not in _SIGNED_BEFORE)
"""In canonical order the fields that are not signed stand together, between these and those before."""
_decode = msgspec.json.Decoder(Receipt).decode


class Signature(NamedTuple):
    """Hex, and the id of the key that made it, as the JWKS lists it."""

    value: str
    kid: str


class Signs(Protocol):
    """What signs receipts (notary/signing/receipt_keys.py)."""

    def sign(self, data: bytes) -> Signature:
        """A signature that names its own key."""


def build_receipt(
    signer: Signs, *, receipt_id: str, grant_id: str, provider_module_digest: str, provider_receipt: object,
    normalized_result: dict[str, Any], verification_outcome: dict[str, Any], effect_evidence: list[Any],
    started_at: str, finished_at: str, failure_class: str | None,
) -> Receipt:  # fmt: skip
    """Build and sign.

    `provider_receipt` is any JSON value: an object is kept as it is, any other value becomes `{"value": …}`. What has
    no canonical form (an integer beyond 2^53, say) is kept as its text, since no provider may prevent the evidence of
    its own call.
    """
    fields: dict[str, Any] = {
        "receipt_id": receipt_id,
        "grant_id": grant_id,
        "provider_module_digest": provider_module_digest,
        "provider_receipt": provider_receipt if isinstance(provider_receipt, dict) else {"value": provider_receipt},
        "normalized_result": normalized_result,
        "verification_outcome": verification_outcome,
        "effect_evidence": effect_evidence,
        "started_at": started_at,
        "finished_at": finished_at,
        "failure_class": failure_class,
    }
    try:
        before, after = _signed_parts(fields)
    except NotCanonical:
        fields = {name: _kept(value) for name, value in fields.items()}
        before, after = _signed_parts(fields)
    envelope = _joined(before, after)
    signature = signer.sign(envelope)
    unsigned: dict[str, Any] = {
        "result_hash": sha256_hex(envelope), "receipt_signature": signature.value, "signing_key_id": signature.kid,
    }  # fmt: skip
    receipt = Receipt(**fields, **unsigned)
    # Filled in here: what a provider returned may be large, and is encoded already.
    receipt.__dict__["stored"] = _joined(before, canonical_bytes(unsigned), after)
    return receipt


def _signed_parts(fields: dict[str, Any]) -> tuple[bytes, bytes]:
    """The envelope as two canonical objects: what stands before and after the fields that are not signed."""
    before, after = ({name: fields[name] for name in names} for names in (_SIGNED_BEFORE, _SIGNED_AFTER))
    return durable_bytes(before), durable_bytes(after)


def _joined(*objects: bytes) -> bytes:
    """One object of the members of several that have some, as they stand."""
    return b"{" + b",".join([encoded[1:-1] for encoded in objects]) + b"}"


def envelope_of(receipt: Receipt) -> bytes:
    """The bytes under the signature. Raises NotCanonical."""
    return canonical_bytes({name: getattr(receipt, name) for name in _SIGNED_FIELDS})


def receipt_fields(receipt: Receipt) -> dict[str, Any]:
    """Every field that is present, by name."""
    found = ((name, getattr(receipt, name)) for name in _FIELDS)
    return {name: value for name, value in found if value is not UNSET}


def encode_receipt(receipt: Receipt) -> bytes:
    """The bytes to store: canonical JSON. Raises NotCanonical."""
    return receipt.stored


def decode_receipt(stored: bytes) -> Receipt:
    """Raises ValueError for anything that is not a receipt."""
    try:
        return _decode(stored)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _kept(value: Any) -> Any:
    """`value` with what has no canonical form replaced by its text."""
    try:
        return _with_texts(value)
    except RecursionError:
        return {"not_kept": "nested too deeply"}


def _with_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {_with_texts(str(name)): _with_texts(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    try:
        durable_bytes(value)
    except NotCanonical:
        return str(value)
    return value
