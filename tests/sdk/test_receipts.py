"""Receipts verified without the gateway: real ones, changed ones, foreign ones."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from gateway_client import AgentClient, OperatorClient, Receipt, SignatureStatus, verify_receipt, verify_receipts
from gateway_client.keys import b64url
from gateway_client.results import Executed, Jwks
from hypothesis import given
from hypothesis import strategies as st

from notary.ledger.receipts import Signature, build_receipt, receipt_fields
from tests.notary.samples import ATTESTED
from tests.support.gateway import Gateway

ROOT = Path(__file__).resolve().parents[2]


def jwk_of(key: Ed25519PrivateKey, kid: str) -> dict[str, Any]:
    return {"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": b64url(key.public_key().public_bytes_raw())}


@pytest.fixture(scope="module")
def real(gate: Gateway) -> tuple[Receipt, Receipt]:
    """A receipt of a success and one of a failure."""
    with AgentClient(gate.base) as agent:
        done = agent.execute("http_fetch", {"path": "/a"})
        assert isinstance(done, Executed)
        with pytest.raises(Exception, match="action_execution_failed") as raised:
            agent.execute("http_fetch", {"path": "/status/500"})
        trace_id = raised.value.trace_id  # type: ignore[attr-defined]
        event = gate.events(trace_id=trace_id)[0]
        return agent.receipt(done.receipt_id), agent.receipt(event["receipt_id"])


@pytest.fixture(scope="module")
def jwks(gate: Gateway) -> dict[str, Any]:
    key_set: dict[str, Any] = gate.operator().get("/v1/receipt-keys").json()
    return key_set


def test_receipts_of_a_running_gateway_verify(
    real: tuple[Receipt, Receipt], jwks: dict[str, Any], operator: OperatorClient
) -> None:
    for receipt in real:
        assert verify_receipt(receipt, jwks) is SignatureStatus.VERIFIED
        assert verify_receipt(receipt, operator.receipt_keys()) == "verified"
        assert verify_receipt(json.loads(json.dumps(receipt.raw)), jwks) is SignatureStatus.VERIFIED
    assert {receipt.normalized_result["kind"] for receipt in real} == {"success", "provider_failure"}


def changes(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place inside a JSON value, with another value for it."""
    yield at, {"other": 1} if not isinstance(value, dict) else [value]
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inside:
        yield from changes(one, (*at, name))


def changed(receipt: dict[str, Any], at: tuple[Any, ...], value: Any) -> dict[str, Any]:
    altered = copy.deepcopy(receipt)
    place: Any = altered
    for step in at[:-1]:
        place = place[step]
    place[at[-1]] = value
    return altered


def test_a_receipt_with_any_value_changed_at_any_depth_does_not_verify(
    real: tuple[Receipt, Receipt], jwks: dict[str, Any]
) -> None:
    places = 0
    for receipt in real:
        raw = dict(receipt.raw)
        for at, value in changes(raw):
            if not at:
                continue
            status = verify_receipt(changed(raw, at, value), jwks)
            places += 1
            if at[0] == "signature_status":  # the gateway's word, not part of the receipt
                assert status is SignatureStatus.VERIFIED
            elif at[0] == "signing_key_id":
                assert status is SignatureStatus.UNKNOWN_KID
            else:
                assert status is SignatureStatus.SIGNATURE_INVALID, at
    assert places > 30


def test_a_receipt_with_a_field_left_out_or_put_in_does_not_verify(
    real: tuple[Receipt, Receipt], jwks: dict[str, Any]
) -> None:
    raw = dict(real[0].raw)
    expected = {
        "receipt_signature": SignatureStatus.UNSIGNED,
        "signing_key_id": SignatureStatus.UNKNOWN_KID,
        "signature_status": SignatureStatus.VERIFIED,
    }
    for name in raw:
        without = {key: value for key, value in raw.items() if key != name}
        assert verify_receipt(without, jwks) is expected.get(name, SignatureStatus.SIGNATURE_INVALID), name
    assert verify_receipt(raw | {"note": None}, jwks) is SignatureStatus.SIGNATURE_INVALID


@pytest.mark.parametrize(
    "change", [lambda s: s[:-2], lambda s: s + "00", lambda s: " " + s[1:], lambda s: "zz" + s[2:]]
)
def test_a_signature_of_another_form_does_not_verify(
    change: Any, real: tuple[Receipt, Receipt], jwks: dict[str, Any]
) -> None:
    raw = dict(real[0].raw)
    raw["receipt_signature"] = change(raw["receipt_signature"])
    assert verify_receipt(raw, jwks) is SignatureStatus.SIGNATURE_INVALID


def test_each_bit_of_a_signature_counts(real: tuple[Receipt, Receipt], jwks: dict[str, Any]) -> None:
    raw = dict(real[0].raw)
    signature = bytes.fromhex(raw["receipt_signature"])
    for bit in range(0, 512, 7):
        other = bytearray(signature)
        other[bit // 8] ^= 1 << bit % 8
        assert verify_receipt(raw | {"receipt_signature": other.hex()}, jwks) is SignatureStatus.SIGNATURE_INVALID


def test_keys_of_other_gateways_and_of_other_kinds_verify_nothing(
    real: tuple[Receipt, Receipt], jwks: dict[str, Any]
) -> None:
    foreign: dict[str, Any] = jwk_of(Ed25519PrivateKey.generate(), "k2")
    strange: list[dict[str, Any]] = [
        {}, {"kty": "EC", "kid": "k"}, {"kty": "OKP", "crv": "X25519", "x": "AA", "kid": "k"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "k"}, {"kty": "OKP", "crv": "Ed25519", "x": "!", "kid": "k"},
        {"kty": "OKP", "crv": "Ed25519", "x": 1, "kid": "k"}, {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
    ]  # fmt: skip
    assert verify_receipt(real[0], {"keys": []}) is SignatureStatus.UNKNOWN_KID
    assert verify_receipt(real[0], {"keys": [foreign, *strange]}) is SignatureStatus.UNKNOWN_KID
    disguised = foreign | {"kid": real[0].signing_key_id}
    assert verify_receipt(real[0], {"keys": [disguised]}) is SignatureStatus.SIGNATURE_INVALID
    assert verify_receipt(real[0], {"keys": [*strange, foreign, *jwks["keys"]]}) is SignatureStatus.VERIFIED


@pytest.mark.parametrize("broken", [{}, {"keys": None}, {"keys": {}}, {"keys": ["k"]}])
def test_a_malformed_jwks_is_an_error_of_the_caller(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="JWKS"):
        verify_receipt({}, broken)
    with pytest.raises(ValueError, match="JWKS"):
        verify_receipts([], broken)


def test_many_receipts_each_get_their_verdict(real: tuple[Receipt, Receipt], jwks: dict[str, Any]) -> None:
    good = json.dumps(real[0].raw)
    twice = good.replace("{", '{"failure_class": null,', 1)
    given_ = [real[1], good, good.encode() + b"\n", "{", twice, b"\xff", "[]", {"receipt_id": 1}]
    verdicts = list(verify_receipts(given_, Jwks(keys=tuple(jwks["keys"]), raw=jwks)))  # type: ignore[arg-type]
    assert [one.status.value for one in verdicts] == [
        "verified", "verified", "verified", *["signature_invalid"] * 4, "unsigned",
    ]  # fmt: skip
    assert [one.receipt_id for one in verdicts[:3]] == [real[1].receipt_id, real[0].receipt_id, real[0].receipt_id]
    assert {one.receipt_id for one in verdicts[3:]} == {None}


class Signer:
    kid = "k1"

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        self.jwks = {"keys": [jwk_of(self._key, self.kid)]}

    def sign(self, data: bytes) -> Signature:
        return Signature(self._key.sign(data).hex(), self.kid)


SIGNER = Signer()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(), one, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_a_receipt_with_any_provider_output_verifies_after_a_journey_as_json(value: Any) -> None:
    receipt = build_receipt(
        SIGNER, ATTESTED, receipt_id="rcpt_1", grant_id="grant_1", provider_module_digest="sha256:0",
        provider_receipt=value, normalized_result={"kind": "success"}, verification_outcome={"status": "skipped"},
        effect_evidence=[], started_at="2026-11-21T11:12:13.123Z", finished_at="2026-11-21T11:12:13.123Z",
        failure_class=None,
    )  # fmt: skip
    sent = json.loads(json.dumps(receipt_fields(receipt)))
    assert verify_receipt(sent, SIGNER.jwks) is SignatureStatus.VERIFIED


def test_the_example_in_the_gateways_document_agrees(real: tuple[Receipt, Receipt], jwks: dict[str, Any]) -> None:
    code = (ROOT / "docs" / "evidence.md").read_text().split("```python\n")[1].split("```")[0]
    exec(code, {"jwks": jwks, "receipt": dict(real[0].raw)})
