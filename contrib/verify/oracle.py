"""A log of its own, to make bundles for tests: keys, tree, notes, one call.

Owns keys and times that are fixed, so that the same bundle has the same bytes each time. The tree is the recursive
definition of RFC 6962 §2.1, slow and clear: an oracle that shares no code with the verifiers or with the gateway.
"""

import base64
import json
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

ORIGIN = "gate.example.com"
TIME = "2026-11-23T05:00:00.000Z"
COSIGNED_AT = 1795410005
LOG, WITNESS = 1, 4
Fields = dict[str, Any]


def key_of(name: str) -> Ed25519PrivateKey:
    """The same key for the same name."""
    return Ed25519PrivateKey.from_private_bytes(sha256(b"test vectors: " + name.encode()).digest())


def raw(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


LOG_KEY, RECEIPT_KEY, STRANGER = key_of("log"), key_of("receipts"), key_of("a stranger")
WITNESSES = {name: key_of(name) for name in ("witness.example.org", "witness.example.net")}


def canonical(value: object) -> bytes:
    """RFC 8785, for the texts and small integers that stand in these vectors."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def hash_text(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def operator_key(name: str) -> ec.EllipticCurvePrivateKey:
    """The same key for the same name."""
    return ec.derive_private_key(int.from_bytes(sha256(b"operator: " + name.encode()).digest(), "big"), ec.SECP256R1())


def operator_jwk(key: ec.EllipticCurvePrivateKey) -> Fields:
    numbers = key.public_key().public_numbers()
    x, y = (b64url(one.to_bytes(32, "big")) for one in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def operator_jkt(key: ec.EllipticCurvePrivateKey) -> str:
    """RFC 7638."""
    return b64url(sha256(canonical(operator_jwk(key))).digest())


def some_hash(name: str) -> str:
    return hash_text(name.encode())


# The tree, as RFC 6962 §2.1 and §2.1.1 define it.


def split_of(count: int) -> int:
    """The largest power of two that is smaller than count."""
    power = 1
    while power * 2 < count:
        power *= 2
    return power


def tree_hash(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    left = split_of(len(leaves))
    return sha256(b"\x01" + tree_hash(leaves[:left]) + tree_hash(leaves[left:])).digest()


def tree_path(index: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    left = split_of(len(leaves))
    if index < left:
        return [*tree_path(index, leaves[:left]), tree_hash(leaves[left:])]
    return [*tree_path(index - left, leaves[left:]), tree_hash(leaves[:left])]


# Signed notes.


def key_id(name: str, kind: int, key: Ed25519PrivateKey) -> bytes:
    return sha256(name.encode() + b"\n" + bytes([kind]) + raw(key)).digest()[:4]


def vkey(name: str, key: Ed25519PrivateKey, kind: int = LOG) -> str:
    """A verifier key."""
    return f"{name}+{key_id(name, kind, key).hex()}+{b64(bytes([kind]) + raw(key))}"


def signature_line(text: str, name: str, key: Ed25519PrivateKey) -> str:
    return f"— {name} {b64(key_id(name, LOG, key) + key.sign(text.encode()))}\n"


def cosignature_line(text: str, name: str, key: Ed25519PrivateKey) -> str:
    signed = f"cosignature/v1\ntime {COSIGNED_AT}\n{text}".encode()
    return f"— {name} {b64(key_id(name, WITNESS, key) + COSIGNED_AT.to_bytes(8, 'big') + key.sign(signed))}\n"


def note_text(origin: str, size: int | str, root: bytes, extension: str = f"time={TIME} unresolved=3") -> str:
    return f"{origin}\n{size}\n{b64(root)}\n{extension}\n"


def note(text: str, key: Ed25519PrivateKey = LOG_KEY, name: str = ORIGIN, more: str = "") -> str:
    return f"{text}\n{signature_line(text, name, key)}{more}"


# One call: receipt, event, intent.

APPROVED_EVENT: Fields = {
    "approval_id": "apr_01", "approved_by": "alice", "operator_sender_binding": "thumbprint-of-alice",
    "operator_proof_jti": "jti-01",
}  # fmt: skip
APPROVED_RECEIPT: Fields = {
    "approval": {
        "approval_id": "apr_01", "approved_by": "alice", "operator_jkt": "thumbprint-of-alice",
        "operator_proof_jti": "jti-01",
    }
}  # fmt: skip
APPROVED_INTENT: Fields = {"approval_id": "apr_01"}
NOT_IN_VERSION_1 = (
    "receipt_version", "principal", "action_id", "action_version", "request_hash", "plan_hash", "trace_id", "epoch",
    "policy_rule", "policy_version", "approval",
)  # fmt: skip
OPERATOR_KEYS = {name: operator_key(name) for name in ("alice", "bob", "carol")}


def signed_approval(
    name: str = "alice", header: Fields | None = None, later: Fields | None = None, **claims: Any
) -> str:  # fmt: skip
    """An operator's signature, with other claims; `later` are changes that the signature does not know of."""
    stated: Fields = {
        "aud": f"https://{ORIGIN}", "approval_id": "apr_01", "action_id": "payment_transfer",
        "plan_hash": some_hash("plan"), "shown_hash": some_hash("shown"), "decision": "approve", "iat": 1795409990,
        "operator": "alice",
    }  # fmt: skip
    signed = changed(stated, claims)
    return signed_jws(OPERATOR_KEYS[name], {"typ": "approval+jws"} | (header or {}), signed, signed | (later or {}))


def signed_jws(key: ec.EllipticCurvePrivateKey, header: Fields, signed: Fields, told: Fields) -> str:
    """A compact JWS that tells these claims, by a signature of those."""
    head = b64url(canonical({"alg": "ES256", "jwk": operator_jwk(key)} | header))
    text = f"{head}.{b64url(canonical(signed))}"
    r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(SHA256(), deterministic_signing=True)))
    return f"{head}.{b64url(canonical(told))}.{b64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def approved_by(signature: str | None, signer: str = "alice") -> Fields:
    """Receipt, event and intent of a call that alice approved, with a signature; `signer` is whose key they name."""
    jkt = operator_jkt(OPERATOR_KEYS[signer])
    approval = APPROVED_RECEIPT["approval"] | {"operator_jkt": jkt} | ({"signature": signature} if signature else {})
    return {
        "receipt": {"approval": approval}, "event": APPROVED_EVENT | {"operator_sender_binding": jkt},
        "intent": APPROVED_INTENT,
    }  # fmt: skip


COMMON: Fields = {
    "trace_id": "trc_01", "principal": "agent:invoices", "action_id": "payment_transfer", "grant_id": "grant_01",
}  # fmt: skip


def changed(base: Fields, changes: Fields) -> Fields:
    """`base` with other members; a change to `...` takes one away."""
    return {name: value for name, value in (base | changes).items() if value is not ...}


def signed_receipt(changes: Fields, signer: Ed25519PrivateKey = RECEIPT_KEY, later: Fields | None = None) -> bytes:
    """The stored bytes of a receipt; `later` are changes that its signature does not know of."""
    fields: Fields = COMMON | {
        "receipt_version": 2, "receipt_id": "rcpt_01", "action_version": "1.0.0", "request_hash": some_hash("request"),
        "plan_hash": some_hash("plan"), "epoch": 4, "policy_rule": "data.gateway.allow", "policy_version": "2026-11-01",
        "approval": None, "provider_module_digest": some_hash("module"),
        "normalized_result": {"kind": "success", "summary": "paid"},
        "provider_receipt": {"note": "5 € paid", "status": 201},
        "verification_outcome": {"evidence": [{"status": 201}], "status": "verified"},
        "effect_evidence": [{"status": 201}], "started_at": "2026-11-23T04:59:58.100Z",
        "finished_at": "2026-11-23T04:59:58.700Z", "failure_class": None,
    }  # fmt: skip
    fields = changed(fields, changes)
    envelope = canonical(fields)
    unsigned = {
        "result_hash": hash_text(envelope), "receipt_signature": signer.sign(envelope).hex(),
        "signing_key_id": "receipts-2026",
    }  # fmt: skip
    return canonical(changed(fields | unsigned, later or {}))


def event_of(receipt: bytes, changes: Fields) -> bytes:
    fields: Fields = COMMON | {
        "event_id": "evt_01", "event_type": "ActionCall", "timestamp": "2026-11-23T04:59:58.701Z", "decision": "allow",
        "action_version": "1.0.0", "request_hash": some_hash("request"), "policy_rule": "data.gateway.allow",
        "policy_version": "2026-11-01", "intent_id": "intent_01", "receipt_id": "rcpt_01",
        "receipt_hash": hash_text(receipt), "provider_module_digest": some_hash("module"),
        "prev_hash": some_hash("the event before"),
    }  # fmt: skip
    return canonical(changed(fields, changes))


def intent_of(changes: Fields) -> bytes:
    fields: Fields = COMMON | {
        "intent_id": "intent_01", "dispatched_at": "2026-11-23T04:59:58.100Z", "provider_module": some_hash("module"),
        "plan_hash": some_hash("plan"), "approval_id": None, "grant": None, "context_hash": some_hash("context"),
    }  # fmt: skip
    return canonical(changed(fields, changes))


def bundle_of(
    receipt: bytes, event: bytes, intent: bytes | None, *, size: int = 21, before: int = 6, index: int = 11,
    key: Ed25519PrivateKey = LOG_KEY, origin: str = ORIGIN, witnesses: tuple[str, ...] = (),
    erasures: dict[int, bytes] | None = None, **noted: Any,
) -> Fields:  # fmt: skip
    """A bundle of a tree with these leaves; `noted` are other parts of its checkpoint than the tree has. `erasures`
    are events that erased kept values, by their places."""
    leaves = [canonical({"event_id": f"evt_other_{number}"}) for number in range(size)]
    placed = {index: ("event", event)} | ({} if intent is None else {before: ("intent", intent)})
    erased = {place: ("event", data) for place, data in (erasures or {}).items()}
    for place, (_, data) in (placed | erased).items():
        leaves[place] = data
    parts: Fields = {"origin": origin, "size": size, "root": tree_hash(leaves)}
    text = note_text(**parts | noted)
    cosigned = "".join(cosignature_line(text, name, WITNESSES[name]) for name in witnesses)
    made: Fields = {
        "bundle_version": 1,
        "origin": origin,
        "receipt": b64(receipt),
        "leaves": proven_leaves(placed, leaves),
        "checkpoint": note(text, key, origin, cosigned),
        "keys": {
            "checkpoints": [vkey(origin, key)],
            "receipts": JWKS,
            "witnesses": [vkey(name, one, WITNESS) for name, one in WITNESSES.items() if name in witnesses],
        },
    }
    return made | ({"erasures": proven_leaves(erased, leaves)} if erased else {})


def proven_leaves(placed: dict[int, tuple[str, bytes]], leaves: list[bytes]) -> list[Fields]:
    return [
        {"kind": kind, "index": place, "bytes": b64(data), "proof": [b64(one) for one in tree_path(place, leaves)]}
        for place, (kind, data) in placed.items()
    ]


def jwk(kid: str, key: Ed25519PrivateKey) -> Fields:
    x = base64.urlsafe_b64encode(raw(key)).decode().rstrip("=")
    return {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": kid, "x": x}


JWKS = {"keys": [jwk("receipts-2025", key_of("receipts of the year before")), jwk("receipts-2026", RECEIPT_KEY)]}


# A call that several operators approved.


def given_approval(name: str, *groups: str, signature: str | None = "", **members: Any) -> Fields:
    """An approval of several, signed by its operator unless another signature, or none, is given."""
    signed = signed_approval(name, operator=name) if signature == "" else signature
    made = {
        "approved_by": name, "operator_jkt": operator_jkt(OPERATOR_KEYS[name]), "operator_proof_jti": f"jti-of-{name}",
        "at": "2026-11-23T04:59:50.000Z",
    }  # fmt: skip
    return made | ({"groups": list(groups)} if groups else {}) | ({"signature": signed} if signed else {}) | members


def approved_by_several(
    *given: Fields, count: int = 2, groups: Fields | None = None, last: Fields | None = None, **members: Any
) -> Fields:  # fmt: skip
    """Receipt, event and intent of a call with these approvals, the last of them (or `last`) that of its operator."""
    operator = last or given[-1]
    names = ("approved_by", "operator_jkt", "operator_proof_jti", "signature")
    own = {name: operator[name] for name in names if name in operator}
    quorum = {"quorum": {"count": count, "groups": groups or {}}, "approvals": list(given)}
    event = {**own, "approval_id": "apr_01", "operator_sender_binding": own["operator_jkt"]}
    return {
        "receipt": {"approval": changed({"approval_id": "apr_01", **own, **quorum}, members)},
        "event": {name: event[name] for name in APPROVED_EVENT}, "intent": APPROVED_INTENT,
    }  # fmt: skip
