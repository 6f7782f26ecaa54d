"""Evidence bundles verified offline: from a trusted log key to what one call did. Makes no request.

The checks are those of contrib/verify in the gateway's repository, whose test vectors this passes. Guarantees that
a bundle is proven only after every check, and that no key which stands in a bundle is ever used.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature

from gateway_client.contract.evidence import Bundle, ProvenLeaf
from gateway_client.errors import EvidenceRefused, ProtocolViolation
from gateway_client.evidence.approval_signatures import check_approval
from gateway_client.evidence.canonical import sha256
from gateway_client.evidence.kept_proofs import check_kept
from gateway_client.evidence.notes import WITNESS, Checkpoint, Note, VerifierKey, open_checkpoint
from gateway_client.evidence.proven_records import decoded, record_in
from gateway_client.evidence.receipts import NOT_SIGNED, Keys, ed25519_keys
from gateway_client.evidence.records import Record
from gateway_client.evidence.standing_signatures import check_standing
from gateway_client.results import Jwks
from gateway_client.wire.decoding import bounded_json, decode

MAX_BYTES = 16 * 1024 * 1024
OF_THE_EVENT = (
    "principal", "action_id", "action_version", "request_hash", "trace_id", "policy_rule", "policy_version",
    "provider_module_digest", "standing_id",
)  # fmt: skip
"""The fields that a receipt of version 2 shares with its event."""
APPROVAL = {
    "approval_id": "approval_id", "approved_by": "approved_by", "operator_jkt": "operator_sender_binding",
    "operator_proof_jti": "operator_proof_jti",
}  # fmt: skip
"""Members of a receipt's approval, and what the event calls them."""
_SIGNATURE = re.compile(r"[0-9a-f]{128}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class ProvenCall:
    """One call, as a log that was verified tells of it. Its times are those of the gateway's clock."""

    principal: str | None
    action_id: str | None
    action_version: str | None
    decision: str | None
    policy_rule: str | None
    policy_version: str | None
    approval_id: str | None
    approved_by: str | None
    approval_key: str | None
    """Thumbprint of the key that has signed the approval, or the standing one, the operator's own. None: it carries no
    signature."""
    standing_id: str | None = None
    """The standing approval by which it ran."""
    is_operator_known: bool
    """The verifying caller named that key; otherwise the gateway alone says whose it is."""
    result: str | None
    """Kind of the receipt's normalized result, such as success or timeout."""
    verification: str | None
    """Whether the effect was seen: the status of the receipt's verification outcome."""
    failure_class: str | None
    dispatched_at: str | None
    """Time of the intent; None for an event that names none."""
    finished_at: str | None
    recorded_at: str | None
    """Time of the event."""
    trace_id: str | None
    event_id: str | None
    event_index: int
    """Its place in the log, from 0."""
    intent_id: str | None
    intent_index: int | None
    receipt_id: str | None
    origin: str
    """Name of the log."""
    size: int
    """How many entries the checkpoint commits to."""
    checkpoint_time: str
    unresolved_intents: int
    """Intents that had no receipt when the checkpoint was signed."""
    receipt_key: str | None
    """Id of the key whose signature of the receipt was checked. None: the checkpoint alone binds the receipt."""
    witnesses: Mapping[str, str]
    """Name of each trusted witness that cosigned the checkpoint, and when."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """The kept values of the request by JSON pointer; of a masked one its shown form."""
    erased: tuple[str, ...] = ()
    """Pointers of the kept values that were erased, as an event in the log says."""


@dataclass(frozen=True, kw_only=True)
class BundleVerdict:
    """The result of a verification: the proven call, or the first mismatch.

    `reason` is its class, for programs (contrib/verify/README.md of the gateway lists them); `sentence` is for people,
    and may quote the bundle.
    """

    call: ProvenCall | None = None
    reason: str | None = None
    sentence: str | None = None

    @property
    def is_proven(self) -> bool:
        """True after every check."""
        return self.call is not None


@dataclass(frozen=True, slots=True)
class _Trusted:
    """Keys that were known before the bundle."""

    logs: tuple[VerifierKey, ...]
    witnesses: tuple[VerifierKey, ...]
    min_witnesses: int | None
    """None: all of them."""
    receipts: Keys | None
    operators: frozenset[str]
    """Thumbprints."""


def verify_bundle(
    bundle: Bundle | Mapping[str, Any] | str | bytes,
    *,
    origin_keys: str | Iterable[str],
    receipt_keys: Jwks | Mapping[str, Any] | None = None,
    witness_keys: Iterable[str] = (),
    operator_keys: Iterable[str] = (),
    min_witnesses: int | None = None,
) -> BundleVerdict:
    """Verify a bundle (`GET /v1/audit/proof`), also as the text of its file.

    `origin_keys`: verifier keys of the log, `name+id+base64`, one of which must have signed the checkpoint. With
    `receipt_keys` (`GET /v1/receipt-keys`, kept) the receipt's own signature is checked too. Each of `witness_keys`
    must have cosigned the checkpoint; with `min_witnesses`, so many of them at least. With `operator_keys`, thumbprints
    (RFC 7638), the call must have been approved and one of them must have signed that; without, a signature is checked
    against the key that the receipt names. Raises ValueError for keys that can't be used, or are too few, never for a
    bundle.
    """
    logs = (origin_keys,) if isinstance(origin_keys, str) else tuple(origin_keys)
    witnesses = tuple(dict.fromkeys(VerifierKey.parse(one, WITNESS) for one in witness_keys))
    different = len({one.public for one in witnesses})
    if min_witnesses is not None and not 0 < min_witnesses <= different:
        raise ValueError(f"{min_witnesses} witnesses are asked for, and {different} keys of witnesses are named")
    trusted = _Trusted(
        tuple(VerifierKey.parse(one) for one in logs),
        witnesses,
        min_witnesses,
        None if receipt_keys is None else ed25519_keys(receipt_keys),
        frozenset(operator_keys),
    )
    try:
        return BundleVerdict(call=_verified(_read(bundle), trusted))
    except EvidenceRefused as refusal:
        return BundleVerdict(reason=refusal.reason, sentence=str(refusal))


def _cosigned(note: Note, trusted: _Trusted) -> dict[str, str]:
    """Name of each witness that has cosigned, and when. Raises EvidenceRefused witness_signature for too few."""
    cosigners, keys = dict[str, str](), set[bytes]()
    for one in trusted.witnesses:
        try:
            cosigners[one.name] = note.check_cosignature(one)
        except EvidenceRefused:
            if trusted.min_witnesses is None:
                raise
        else:
            keys.add(one.public)
    # A key under two names is one witness.
    if trusted.min_witnesses is not None and len(keys) < trusted.min_witnesses:
        names = ", ".join(map(ascii, cosigners)) or "none"
        wanted = f"{trusted.min_witnesses} trusted witnesses"
        raise EvidenceRefused("witness_signature", f"The checkpoint is to be cosigned by {wanted}, and is by {names}.")
    return cosigners


def _read(given: Bundle | Mapping[str, Any] | str | bytes) -> Bundle:
    fields: Any = given.raw if isinstance(given, Bundle) else given
    if isinstance(fields, str | bytes):
        try:
            data = fields.encode() if isinstance(fields, str) else fields
            fields = bounded_json(data, "the bundle") if len(data) <= MAX_BYTES else None
        except (ProtocolViolation, UnicodeEncodeError):
            fields = None
    if not isinstance(fields, Mapping):
        raise EvidenceRefused("unreadable", "The bundle is not a JSON object of 16 MB at most.")
    version = fields.get("bundle_version")
    if type(version) is not int or version != 1:
        raise EvidenceRefused("bundle_malformed", "The bundle is not of version 1.")
    try:
        # SECURITY: its keys are never used, and so not read either.
        return decode(Bundle, {name: value for name, value in fields.items() if name != "keys"}, "bundle")
    except ProtocolViolation as error:
        raise EvidenceRefused("bundle_malformed", f"The {error.reason}.") from None


def _verified(bundle: Bundle, trusted: _Trusted) -> ProvenCall:
    log = open_checkpoint(bundle.checkpoint, trusted.logs)
    if bundle.origin != log.origin:
        raise EvidenceRefused("note_origin", f"The checkpoint is of the log {log.origin!a}, not of {bundle.origin!a}.")
    note = Note.parse(bundle.checkpoint)
    witnesses = _cosigned(note, trusted)
    leaves = _leaves(bundle.leaves, log)
    event, event_index = leaves["event"]
    intent, intent_index = leaves.get("intent", (None, None))
    receipt, is_bound = _receipt(bundle.receipt, event)
    # Ledgers from before the tree have receipts of version 1; all their events come first, and then their intents.
    is_old = receipt.exact("receipt_version") == "null"
    if intent_index is not None and intent_index >= event_index and not is_old:
        raise EvidenceRefused("leaf_order", "The intent does not come before the event in the log.")
    if not is_bound and not (is_old and event.exact("receipt_hash") == "null" and trusted.receipts is not None):
        raise EvidenceRefused("receipt_hash", "The receipt is not bound by the event, which does not have its hash.")
    approval = _check_agreement(event, intent, receipt)
    standing_key = check_standing(receipt, log.origin, trusted.operators)
    approval_key = standing_key or check_approval(receipt, approval, trusted.operators)
    kept = check_kept(event, bundle, log)
    signer = None if trusted.receipts is None else _check_signature(receipt, trusted.receipts)
    return ProvenCall(
        principal=event.text("principal"), action_id=event.text("action_id"),
        action_version=event.text("action_version"), decision=event.text("decision"),
        policy_rule=event.text("policy_rule"), policy_version=event.text("policy_version"),
        approval_id=event.text("approval_id"), approved_by=event.text("approved_by"), approval_key=approval_key,
        standing_id=receipt.text("standing_id"), is_operator_known=approval_key in trusted.operators,
        result=receipt.inner("normalized_result").text("kind"),
        verification=receipt.inner("verification_outcome").text("status"), failure_class=receipt.text("failure_class"),
        dispatched_at=None if intent is None else intent.text("dispatched_at"),
        finished_at=receipt.text("finished_at"), recorded_at=event.text("timestamp"), trace_id=event.text("trace_id"),
        event_id=event.text("event_id"), event_index=event_index, intent_id=event.text("intent_id"),
        intent_index=intent_index, receipt_id=receipt.text("receipt_id"), origin=log.origin, size=log.size,
        checkpoint_time=log.time, unresolved_intents=log.unresolved_intents, receipt_key=signer, witnesses=witnesses,
        kept=kept.values, erased=kept.erased,
    )  # fmt: skip


def _leaves(given: Iterable[ProvenLeaf], log: Checkpoint) -> dict[str, tuple[Record, int]]:
    """The entries by kind, each with its index, all in the tree of the checkpoint."""
    leaves: dict[str, tuple[Record, int]] = {}
    for one in given:
        if one.kind not in ("event", "intent") or one.kind in leaves:
            raise EvidenceRefused("leaves", "A leaf of the bundle is not the one event or the one intent.")
        leaves[one.kind] = record_in(one, log), one.index
    if "event" not in leaves:
        raise EvidenceRefused("leaves", "The bundle has no event.")
    return leaves


def _receipt(given: str | None, event: Record) -> tuple[Record, bool]:
    """The receipt, and whether it is the one whose hash the event has."""
    if given is None:
        raise EvidenceRefused("bundle_malformed", "The bundle has no receipt: it is not about a call that ended.")
    stored = decoded(given, "The receipt in the bundle")
    return Record(stored, "receipt"), event.text("receipt_hash") == sha256(stored)


def _check_agreement(event: Record, intent: Record | None, receipt: Record) -> Record:
    """The receipt's approval, empty without one. Raises EvidenceRefused unless all tell of the same call."""
    if event.required("event_type") != "ActionCall":
        raise event.malformed("is not that of a call of an action")
    for name in ("receipt_id", "grant_id"):
        receipt.require_same(name, event)
    if intent is None:
        if event.exact("intent_id") != "null":
            raise EvidenceRefused("leaves", "The event names an intent, and the bundle has none.")
    else:
        intent.required("dispatched_at")  # an event has none: it can't stand for its own intent
        for name in ("intent_id", "grant_id", "trace_id", "action_id", "principal"):
            event.require_same(name, intent)
    version = receipt.exact("receipt_version")
    if version == "null":
        return Record("{}", "receipt")
    if version != "2":
        raise receipt.malformed("has a version that is not known here")
    for name in OF_THE_EVENT:
        receipt.require_same(name, event)
    approval = Record("{}", "receipt") if receipt.exact("approval") == "null" else receipt.inner("approval")
    for name, name_in_event in APPROVAL.items():
        approval.require_same(name, event, name_in_event)
    if intent is not None:
        receipt.require_same("plan_hash", intent)
        receipt.require_same("provider_module_digest", intent, "provider_module")
        approval.require_same("approval_id", intent)
    return approval


def _check_signature(receipt: Record, keys: Keys) -> str:
    """Check the receipt's own signature; gives the id of its key. Raises EvidenceRefused."""
    kid, signature = receipt.required("signing_key_id"), receipt.required("receipt_signature")
    own = keys.get(kid, [])
    if len(own) != 1:
        raise EvidenceRefused("receipt_key", f"The receipt keys have no Ed25519 key {kid!a}.")
    envelope = receipt.without(*NOT_SIGNED).encode()
    if receipt.required("result_hash") != sha256(envelope):
        raise EvidenceRefused("result_hash", "The result_hash is not the hash of what the receipt signs.")
    try:
        own[0].verify(bytes.fromhex(signature) if _SIGNATURE.fullmatch(signature) else b"", envelope)
    except InvalidSignature:
        raise EvidenceRefused("receipt_signature", "The signature of the receipt is invalid.") from None
    return kid
