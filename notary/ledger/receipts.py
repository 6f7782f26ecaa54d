"""Receipts: the outcome of a dispatch, in a form that others can check against the published keys.

Guarantees that every field but those named in NOT_SIGNED is under the signature, and that a receipt can be built from
any output of a provider. Field names are those of docs/contract.md, "Receipt".
"""

from collections.abc import Iterable
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from ipc.configuration.quorum import GivenApproval, Quorum
from ipc.texts.canonical import NotCanonical, canonical_bytes, durable_bytes, is_durable_number, sha256_hex

VERSION = 2
"""Receipts of version 1 have no `receipt_version`, and none of the fields of Attested."""


class ReceiptDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The operator who approved the call, and the proof."""

    approval_id: str
    approved_by: str
    operator_jkt: str
    operator_proof_jti: str
    signature: str | UnsetType = UNSET
    """The operator's own, of the decision; absent where none was sent."""
    quorum: Quorum | UnsetType = UNSET
    approvals: tuple[GivenApproval, ...] | UnsetType = UNSET
    """Where the call needed several approvals: all of them, the operator's above the last one."""


class Attested(msgspec.Struct, frozen=True, kw_only=True):
    """The caller, the action, and why the call was allowed."""

    principal: str
    action_id: str
    action_version: str | None
    request_hash: str | None
    plan_hash: str
    trace_id: str
    epoch: int
    policy_rule: str | None
    policy_version: str | None
    approval: ReceiptDecision | None
    egress_networks: tuple[str, ...] | UnsetType = UNSET
    standing_id: str | UnsetType = UNSET
    standing_signature: str | UnsetType = UNSET


class LedgerReceipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """As stored and as shown, `signature_status` aside, which is found out anew each time it is shown."""

    receipt_version: int | UnsetType = UNSET
    principal: str | UnsetType = UNSET
    action_id: str | UnsetType = UNSET
    action_version: str | UnsetType | None = UNSET
    request_hash: str | UnsetType | None = UNSET
    plan_hash: str | UnsetType = UNSET
    trace_id: str | UnsetType = UNSET
    epoch: int | UnsetType = UNSET
    policy_rule: str | UnsetType | None = UNSET
    policy_version: str | UnsetType | None = UNSET
    approval: ReceiptDecision | UnsetType | None = UNSET
    egress_networks: tuple[str, ...] | UnsetType = UNSET
    """Names of private networks; absent where the call could enter none."""
    standing_id: str | UnsetType = UNSET
    """The standing approval by which the call ran; absent for any other call."""
    standing_signature: str | UnsetType = UNSET
    """The text of that which its operator signed."""

    receipt_id: str
    grant_id: str
    provider_module_digest: str
    provider_receipt: dict[str, Any]
    """The output of the provider. `build_receipt` says how other values than objects are kept."""
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

    @property
    def hash(self) -> str:
        """The hash of the receipt, which the event of its call carries as `receipt_hash`."""
        return sha256_hex(self.stored)


NOT_SIGNED = frozenset({"result_hash", "receipt_signature", "signing_key_id", "signature_status"})
"""docs/decisions/evidence.md, "Audit, receipts, intents"."""
_FIELDS = LedgerReceipt.__struct_fields__
_RUNS = tuple(
    (is_signed, tuple(names)) for is_signed, names in groupby(sorted(_FIELDS), key=lambda name: name not in NOT_SIGNED)
)
"""Fields in canonical order, in runs of which the signature covers all or none."""
_NAMES = frozenset(_FIELDS)
_decode = msgspec.json.Decoder(LedgerReceipt).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode


class Signature(NamedTuple):
    """Hex, and the id of the key that made it, as the JWKS lists it."""

    value: str
    kid: str


class SignedBytes(NamedTuple):
    """The bytes under a receipt's signature, and what stands beside them."""

    envelope: bytes
    receipt_signature: str
    signing_key_id: str
    result_hash: str


class Signs(Protocol):
    """A signer of receipts (notary/signing/receipt_keys.py)."""

    def sign(self, data: bytes) -> Signature:
        """A signature that names its own key."""


def build_receipt(
    signer: Signs, attested: Attested, *, receipt_id: str, grant_id: str, provider_module_digest: str,
    provider_receipt: object, normalized_result: dict[str, Any], verification_outcome: dict[str, Any],
    effect_evidence: list[Any], started_at: str, finished_at: str, failure_class: str | None,
) -> LedgerReceipt:  # fmt: skip
    """Build and sign.

    `provider_receipt` is any JSON value: an object is kept as it is, any other value becomes `{"value": …}`. A
    value without a canonical form (such as an integer beyond 2^53) is kept as its text, since no provider may prevent
    the evidence of its own call.
    """
    fields: dict[str, Any] = {
        "receipt_version": VERSION,
        **{name: value for name in Attested.__struct_fields__ if (value := getattr(attested, name)) is not UNSET},
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
    encoded = fields | {"approval": msgspec.to_builtins(attested.approval)}
    try:
        signed = _signed_runs(encoded)
    except NotCanonical:
        fields |= {name: _kept(fields[name]) for name in _FROM_OUTSIDE}
        signed = _signed_runs(encoded | fields | {"approval": encoded["approval"]})
    envelope = _joined(signed.values())
    signature = signer.sign(envelope)
    unsigned: dict[str, Any] = {
        "result_hash": sha256_hex(envelope), "receipt_signature": signature.value, "signing_key_id": signature.kid,
    }  # fmt: skip
    receipt = LedgerReceipt(**fields, **unsigned)
    # Filled in here: what a provider returned may be large, and is encoded already.
    receipt.__dict__["stored"] = _joined(
        signed[names] if is_signed else canonical_bytes({name: unsigned[name] for name in names})
        for is_signed, names in _RUNS
    )
    return receipt


_FROM_OUTSIDE = ("provider_receipt", "normalized_result", "verification_outcome", "effect_evidence")
"""Fields in which a provider or a verifier has its own words."""


def _signed_runs(fields: dict[str, Any]) -> dict[tuple[str, ...], bytes]:
    """The envelope as canonical objects, one for each run of fields that are signed. Raises NotCanonical."""
    return {
        names: durable_bytes({name: fields[name] for name in names if name in fields})
        for is_signed, names in _RUNS
        if is_signed
    }


def _joined(objects: Iterable[bytes]) -> bytes:
    """One object of the members of several that have some, as they stand."""
    return b"{" + b",".join([encoded[1:-1] for encoded in objects]) + b"}"


def envelope_of(receipt: LedgerReceipt) -> bytes:
    """The bytes under the signature. Raises NotCanonical."""
    return canonical_bytes({name: value for name, value in receipt_fields(receipt).items() if name not in NOT_SIGNED})


def signed_in(stored: bytes) -> SignedBytes | None:
    """Find the signed bytes in a stored receipt without parsing the values of its fields. None where the bytes are not
    in the form that `build_receipt` writes: `decode_receipt` tells more of them."""
    try:
        members = _members(stored)
        texts = {name: _text(members[name]) for name in ("receipt_signature", "signing_key_id", "result_hash")}
    except (ValueError, KeyError, RecursionError):
        return None
    parts = {name: b'"%b":%b' % (name.encode(), bytes(value)) for name, value in members.items()}
    if not members.keys() <= _NAMES or b"{" + b",".join([parts[name] for name in sorted(parts)]) + b"}" != stored:
        return None
    envelope = b"{" + b",".join([parts[name] for name in sorted(parts) if name not in NOT_SIGNED]) + b"}"
    return SignedBytes(envelope, **texts)


def receipt_fields(receipt: LedgerReceipt) -> dict[str, Any]:
    """Every field that is present, by name."""
    fields = {name: value for name in _FIELDS if (value := getattr(receipt, name)) is not UNSET}
    if isinstance(approval := fields.get("approval"), ReceiptDecision):
        fields["approval"] = msgspec.to_builtins(approval)
    return fields


def encode_receipt(receipt: LedgerReceipt) -> bytes:
    """The bytes to store: canonical JSON. Raises NotCanonical."""
    return receipt.stored


def decode_receipt(stored: bytes) -> LedgerReceipt:
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
    kind = type(value)
    if kind is int or kind is float:  # most values of a long answer
        return value if is_durable_number(value) else str(value)
    if value is None or kind is bool:
        return value
    if kind is dict:
        return {_with_texts(str(name)): _with_texts(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [_with_texts(item) for item in value]
    return str(value).encode("utf-8", "backslashreplace").decode()
