"""An operator's own signature of a decision: a compact JWS with the `typ` `approval+jws`, made and verified.

Guarantees that nothing is signed but what was shown: a detail that does not hash to its own `shown_hash` is refused.
The claims are those of docs/evidence.md of the gateway. Verification is offline, and never believes the key that
stands in the signature: the caller gives the operator's thumbprint, or the verdict says that it was not compared.
"""

import base64
import hashlib
import json
import re
from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.errors import EvidenceRefused, ProtocolViolation
from gateway_client.evidence.canonical import canonical_bytes, sha256
from gateway_client.evidence.records import Record
from gateway_client.keys import OperatorCredential, b64url
from gateway_client.wire.decoding import INTEGERS, bounded_json

TYPE = "approval+jws"
NOT_HASHED = frozenset(
    {
        "state", "status", "claimed_by", "claimed_at", "completed_at", "receipt_id", "deny_reason", "error_code",
        "approval_signature", "approvals", "caps", "shown_hash",
    }
)  # fmt: skip
"""Members of an approval's detail that change while it is decided, and the hash itself. Every other one is hashed."""
_FORM = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})", re.ASCII)
_MOST_GROUPS = 8
_LOOPBACK = re.compile(r"//(?:127\.0\.0\.1|\[::1\])(?=:)")
"""Dev mode's other names of the gateway's own address, which are one audience with localhost."""
_COORDINATE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def hash_of_shown(detail: ApprovalDetail) -> str:
    """`sha256:<hex>` of what this detail shows. Raises ProtocolViolation for what has no canonical form."""
    shown = {name: value for name, value in detail.raw.items() if name not in NOT_HASHED}
    try:
        return sha256(canonical_bytes(shown))
    except ValueError:
        raise ProtocolViolation("what is shown has no canonical form, and can't be signed") from None


def is_as_shown(detail: ApprovalDetail) -> bool:
    """True when what this detail shows is what it says to show. Raises ProtocolViolation."""
    return hash_of_shown(detail) == detail.shown_hash


def sign_decision(
    credential: OperatorCredential, public_base_url: str, detail: ApprovalDetail, decision: str, now: float,
    **more: str | None,
) -> str:  # fmt: skip
    """The signature of `decision` (approve or deny) about what was shown.

    `more`: learn_domain, learn_path or reason, as they are sent. Raises ProtocolViolation for a detail that does not
    hash to its own `shown_hash`: something else may have been shown than what will happen.
    """
    if not is_as_shown(detail):
        raise ProtocolViolation("what is shown does not hash to shown_hash: it is not signed")
    claims: dict[str, Any] = {
        "aud": public_base_url, "approval_id": detail.approval_id, "action_id": detail.action_id,
        "plan_hash": detail.plan_hash, "shown_hash": detail.shown_hash, "decision": decision, "iat": int(now),
        "operator": credential.name, **more,
    }  # fmt: skip
    return sign_claims(credential, TYPE, claims)


def sign_claims(credential: OperatorCredential, type_: str, claims: Mapping[str, Any]) -> str:
    """A compact JWS of these claims with the operator's key, without those that are None."""
    header = {"typ": type_, "alg": "ES256", "jwk": credential.key.jwk}
    signed = f"{_part(header)}.{_part({name: value for name, value in claims.items() if value is not None})}"
    return f"{signed}.{b64url(credential.key.sign(signed.encode()))}"


def check_approval(receipt: Record, approval: Record, operators: Collection[str]) -> str | None:
    """Check the signature in a receipt's approval; returns the thumbprint of its key, or None without a signature.

    `operators` are thumbprints, one of which must be that key's; with none of them any key will do. Raises
    EvidenceRefused approval_signature.
    """
    _check_quorum(receipt, approval, operators)
    signature = approval.text("signature")
    if signature is None:
        if operators:
            raise _refused("No operator whose key is known has signed it")
        return None
    told = _Told(approval.text("approval_id"), approval.text("approved_by"), approval.text("operator_jkt"))
    return _check_signed(receipt, told, signature, operators)[0]


class _Told(NamedTuple):
    """The members of a receipt about one approval."""

    approval_id: str | None
    approved_by: str | None
    operator_jkt: str | None


def _check_signed(
    receipt: Record, approval: _Told, signature: str, operators: Collection[str]
) -> tuple[str, dict[str, Any]]:
    """Check one approval; returns the thumbprint of its key, and the claims."""
    jkt, claims = opened(signature, TYPE)
    if jkt != approval.operator_jkt or (operators and jkt not in operators):
        raise _refused("It is not signed by the operator's key")
    stated = {name: claims.get(name) for name in ("approval_id", "action_id", "plan_hash", "decision")}
    told = {
        "approval_id": approval.approval_id, "action_id": receipt.text("action_id"),
        "plan_hash": receipt.text("plan_hash"), "decision": "approve",
    }  # fmt: skip
    if stated != told or claims.get("operator", approval.approved_by) != approval.approved_by:
        raise _refused("It is signed for another decision than the one that the receipt tells")
    return jkt, claims


def _check_quorum(receipt: Record, approval: Record, operators: Collection[str]) -> None:
    """Check that a receipt's several approvals are of different operators, signed as one is, and meet its quorum."""
    quorum, given = json.loads(approval.exact("quorum")), json.loads(approval.exact("approvals"))
    if quorum is None and given is None:
        return
    try:
        count, groups = quorum["count"], dict(quorum["groups"].items())
        told = [_Told(approval.text("approval_id"), one["approved_by"], one["operator_jkt"]) for one in given]
        signatures = [one.get("signature") for one in given]
        members = [[] if one.get("groups") is None else one["groups"] for one in given]
        if not all(isinstance(one, list) for one in (given, *members)):
            raise TypeError("not lists")
    except (TypeError, KeyError, ValueError, AttributeError):
        count, groups, told, signatures, members = None, {}, [], [], []
    texts = [text for row in told for text in row[1:]] + [name for names in members for name in names]
    are_integers = all(type(one) is int and one in INTEGERS and one >= 0 for one in (count, *groups.values()))
    if not are_integers or not all(isinstance(one, str) for one in texts):
        raise approval.malformed("tells of its approvals in another form")
    if len({one.approved_by for one in told}) < len(told) or len({one.operator_jkt for one in told}) < len(told):
        raise _refused("One operator stands for two approvals")
    if not told or told[-1] != _Told(*(approval.text(name) for name in _Told._fields)):
        raise _refused("The last of its approvals is not that of its operator")
    if signatures[-1] != approval.text("signature"):
        raise _refused("The last of its approvals has another signature than its operator's")
    chosen = (one for size in range(1, len(groups) + 1) for one in combinations(groups, size))
    if len(told) < count or len(groups) > _MOST_GROUPS or any(
        sum(1 for one in members if {*one} & {*names}) < sum(groups[name] for name in names) for names in chosen
    ):  # fmt: skip
        raise _refused("Its approvals do not meet its quorum")
    audiences = set()
    for one, signature in zip(told, signatures, strict=True):
        if isinstance(signature, str):
            audience = _check_signed(receipt, one, signature, operators)[1].get("aud")
            audiences.add(_LOOPBACK.sub("//localhost", audience) if isinstance(audience, str) else "")
        elif operators or any(signatures):
            raise _refused("One of its approvals is not signed")
    if len(audiences) > 1 or "" in audiences:
        raise _refused("Its approvals are signed for different gateways")


def thumbprint(jwk: Mapping[str, Any]) -> str:
    """RFC 7638, of a P-256 key. Raises ValueError for any other."""
    x, y = jwk.get("x"), jwk.get("y")
    if (jwk.get("kty"), jwk.get("crv")) != ("EC", "P-256") or not _is_coordinate(x) or not _is_coordinate(y):
        raise ValueError("not a P-256 key")
    members = f'{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}'
    return b64url(hashlib.sha256(members.encode()).digest())


def opened(signature: str, type_: str) -> tuple[str, dict[str, Any]]:
    """The thumbprint of the key that has signed, and what. Raises EvidenceRefused."""
    parts = _FORM.fullmatch(signature)
    try:
        header, claims, raw = map(_unb64, parts.groups() if parts else ())
        members, stated = bounded_json(header, "the header"), bounded_json(claims, "the claims")
        if (members["typ"], members["alg"]) != (type_, "ES256") or not isinstance(stated, dict):
            raise ValueError("another type")
        jkt = thumbprint(members["jwk"])
        point = b"\x04" + _unb64(members["jwk"]["x"]) + _unb64(members["jwk"]["y"])
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        numbers = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        key.verify(numbers, signature.rpartition(".")[0].encode(), ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ProtocolViolation, ValueError, TypeError, KeyError, AttributeError):
        raise _refused("The signature is invalid") from None
    return jkt, stated


def _refused(why: str) -> EvidenceRefused:
    return EvidenceRefused("approval_signature", f"The approval is not proven to be its operator's. {why}.")


def _is_coordinate(text: object) -> bool:
    return isinstance(text, str) and _COORDINATE.fullmatch(text) is not None


def _part(value: object) -> str:
    return b64url(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _unb64(text: str) -> bytes:
    """In the one form that an encoder writes. Raises ValueError."""
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if b64url(data) != text:
        raise ValueError("not base64url without padding")
    return data
