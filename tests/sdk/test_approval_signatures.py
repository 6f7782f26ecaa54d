"""Decisions that the client library signs: over what was shown, and proven offline."""

import base64
import json
from typing import Any

import pytest
from gateway_client import (
    AgentClient,
    Held,
    OperatorClient,
    OperatorCredential,
    ProofKey,
    ProtocolViolation,
    verify_bundle,
)
from gateway_client.contract.approvals import ApprovalDetail
from gateway_client.evidence.approval_signatures import hash_of_shown, sign_decision, thumbprint
from msgspec.structs import replace

from ipc.keys.shown import NOT_HASHED
from tests.support.gateway import Gateway

_amounts = iter(range(1_000, 9_000))


def hold(gate: Gateway) -> str:
    with AgentClient(gate.base) as agent:
        held = agent.execute("payment_transfer", {"to": "a", "amount_cents": next(_amounts), "currency": "EUR"})
    assert isinstance(held, Held)
    return held.approval_id


def claims_of(signature: str) -> dict[str, Any]:
    payload = signature.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return claims


def test_a_signed_approval_is_proven_offline_to_be_its_operators(
    operator: OperatorClient, gate: Gateway, credential: OperatorCredential
) -> None:
    detail = operator.approval(hold(gate))
    done = operator.approve(detail.approval_id, shown=detail)
    bundle = operator.proof(receipt_id=done.receipt_id)
    keys = operator.checkpoint().keys
    jkt = credential.key.thumbprint
    call = verify_bundle(bundle, origin_keys=keys, operator_keys=(jkt,)).call
    assert call is not None
    assert (call.approved_by, call.approval_key, call.is_operator_known) == ("dev", jkt, True)
    unknown = verify_bundle(bundle, origin_keys=keys).call
    assert unknown is not None
    assert (unknown.approval_key, unknown.is_operator_known) == (jkt, False)
    other = ProofKey.generate().thumbprint
    assert verify_bundle(bundle, origin_keys=keys, operator_keys=(other,)).reason == "approval_signature"
    signature = operator.approval(detail.approval_id).approval_signature
    assert signature is not None
    stated = claims_of(signature)
    assert isinstance(stated.pop("iat"), int)
    assert stated == {
        "aud": gate.base, "approval_id": detail.approval_id, "action_id": "payment_transfer",
        "plan_hash": detail.plan_hash, "shown_hash": detail.shown_hash, "decision": "approve", "operator": "dev",
    }  # fmt: skip


def changed(detail: ApprovalDetail, **members: Any) -> ApprovalDetail:
    return replace(detail, raw={**detail.raw, **members})


def test_nothing_is_signed_that_is_not_what_was_shown(
    operator: OperatorClient, gate: Gateway, credential: OperatorCredential
) -> None:
    detail = operator.approval(hold(gate))
    assert hash_of_shown(detail) == detail.shown_hash
    for member in detail.raw:
        if member not in NOT_HASHED:
            with pytest.raises(ProtocolViolation):
                operator.approve(detail.approval_id, shown=changed(detail, **{member: "something else"}))
    for spoilt in (changed(detail, new="x"), changed(detail, request={"n": 2**60}), replace(detail, shown_hash=None)):
        with pytest.raises(ProtocolViolation):
            sign_decision(credential, gate.base, spoilt, "approve", 0.0)
    assert operator.approval(detail.approval_id).state == "pending"


def test_an_operators_name_is_read_from_the_form_of_the_key_alone() -> None:
    key = ProofKey.generate()
    assert OperatorCredential("key-ann.b-" + "0" * 32, key).name == "ann.b"
    assert OperatorCredential("something-else", key).name is None


def test_the_thumbprint_of_a_key_is_that_of_rfc_7638_and_of_p256_alone() -> None:
    key = ProofKey.generate()
    assert thumbprint(key.jwk | {"kid": "x"}) == key.thumbprint
    for spoilt in ({"crv": "P-384"}, {"x": "AA"}, {"y": None}, {"kty": "OKP"}):
        with pytest.raises(ValueError, match="not a P-256 key"):
            thumbprint(key.jwk | spoilt)
