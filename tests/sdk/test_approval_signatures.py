"""Decisions that the client library signs: over what was shown, taken by a gateway that wants them, proven offline."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_client import (
    AgentClient,
    Denied,
    Held,
    OperatorClient,
    OperatorCredential,
    ProofKey,
    ProtocolViolation,
    verify_bundle,
)
from gateway_client.approval_signatures import hash_of_shown, sign_decision, thumbprint
from gateway_client.contract.approvals import ApprovalDetail
from msgspec.structs import replace

from ipc.keys.shown import NOT_HASHED
from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import patient
from tests.support.upstream import Upstream


@pytest.fixture(scope="module")
def strict(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that takes no decision without a signature."""
    folder = tmp_path_factory.mktemp("strict")
    config = f"{config_for(up.address, patient(folder / 'actions'))}\n[approvals]\nrequire_signature = true\n"
    with gateway(folder, config) as running:
        yield running


@pytest.fixture
def signer(strict: Gateway) -> OperatorCredential:
    return OperatorCredential.load(strict.state / "operator.key", strict.ready["operator"]["private_key_file"])


@pytest.fixture
def decider(strict: Gateway, signer: OperatorCredential) -> Iterator[OperatorClient]:
    with OperatorClient(strict.base, signer) as client:
        yield client


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


def test_a_gateway_that_wants_signatures_decides_nothing_without(decider: OperatorClient, strict: Gateway) -> None:
    approval_id = hold(strict)
    for decide in (decider.approve, decider.deny):
        with pytest.raises(Denied) as raised:
            decide(approval_id)
        assert raised.value.code == "approval_signature_required"
    assert decider.approval(approval_id).state == "pending"


def test_a_signed_approval_is_proven_offline_to_be_its_operators(
    decider: OperatorClient, strict: Gateway, signer: OperatorCredential
) -> None:
    detail = decider.approval(hold(strict))
    done = decider.approve(detail.approval_id, shown=detail)
    bundle = decider.proof(receipt_id=done.receipt_id)
    keys = decider.checkpoint().keys
    jkt = signer.key.thumbprint
    call = verify_bundle(bundle, origin_keys=keys, operator_keys=(jkt,)).call
    assert call is not None
    assert (call.approved_by, call.approval_key, call.is_operator_known) == ("dev", jkt, True)
    unknown = verify_bundle(bundle, origin_keys=keys).call
    assert unknown is not None
    assert (unknown.approval_key, unknown.is_operator_known) == (jkt, False)
    other = ProofKey.generate().thumbprint
    assert verify_bundle(bundle, origin_keys=keys, operator_keys=(other,)).reason == "approval_signature"
    signature = decider.approval(detail.approval_id).approval_signature
    assert signature is not None
    stated = claims_of(signature)
    assert isinstance(stated.pop("iat"), int)
    assert stated == {
        "aud": strict.base, "approval_id": detail.approval_id, "action_id": "payment_transfer",
        "plan_hash": detail.plan_hash, "shown_hash": detail.shown_hash, "decision": "approve", "operator": "dev",
    }  # fmt: skip


def test_a_signed_denial_is_in_evidence_with_its_reason(decider: OperatorClient, strict: Gateway) -> None:
    detail, reason = decider.approval(hold(strict)), "zu viel für heute"
    assert decider.deny(detail.approval_id, reason, shown=detail).deny_reason == reason
    (event,) = (one for one in decider.events().events if one.event_type == "ApprovalDenied")
    stated = claims_of(event.raw["approval_signature"])
    assert (stated["decision"], stated["reason"], stated["plan_hash"]) == (
        "deny",
        "zu viel für heute",
        detail.plan_hash,
    )


def test_a_signature_for_another_hold_decides_nothing(decider: OperatorClient, strict: Gateway) -> None:
    one, other = decider.approval(hold(strict)), decider.approval(hold(strict))
    with pytest.raises(Denied) as raised:
        decider.approve(one.approval_id, shown=other)
    assert raised.value.code == "invalid_approval_signature"
    assert {decider.approval(each.approval_id).state for each in (one, other)} == {"pending"}


def changed(detail: ApprovalDetail, **members: Any) -> ApprovalDetail:
    return replace(detail, raw={**detail.raw, **members})


def test_nothing_is_signed_that_is_not_what_was_shown(
    decider: OperatorClient, strict: Gateway, signer: OperatorCredential
) -> None:
    detail = decider.approval(hold(strict))
    assert hash_of_shown(detail) == detail.shown_hash
    for member in detail.raw:
        if member not in NOT_HASHED:
            with pytest.raises(ProtocolViolation):
                decider.approve(detail.approval_id, shown=changed(detail, **{member: "something else"}))
    for spoilt in (changed(detail, new="x"), changed(detail, request={"n": 2**60}), replace(detail, shown_hash=None)):
        with pytest.raises(ProtocolViolation):
            sign_decision(signer, strict.base, spoilt, "approve", 0.0)
    assert decider.approval(detail.approval_id).state == "pending"


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
