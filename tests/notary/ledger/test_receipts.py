"""Receipts: what is signed, and that one can always be made."""

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from notary.ledger.receipts import (
    NOT_SIGNED,
    LedgerReceipt,
    ReceiptDecision,
    decode_receipt,
    encode_receipt,
    envelope_of,
    receipt_fields,
)
from tests.ipc.texts.test_canonical import VALUES
from tests.notary.samples import ATTESTED, SIGNER, changed, make_held, make_receipt

FIELDS = set(LedgerReceipt.__struct_fields__)
OF_STANDING = {"standing_id", "standing_signature"}
"""Absent unless a call ran by a standing approval."""


def test_the_envelope_is_every_field_but_four() -> None:
    receipt = make_receipt()
    signed = {name: value for name, value in receipt_fields(receipt).items() if name not in {
        "result_hash", "receipt_signature", "signing_key_id", "signature_status",
    }}  # fmt: skip
    assert len(signed) == len(FIELDS) - len({"result_hash", "receipt_signature", "signing_key_id"} | OF_STANDING)
    assert envelope_of(receipt) == rfc8785.dumps(signed)
    assert receipt.result_hash == "sha256:" + hashlib.sha256(rfc8785.dumps(signed)).hexdigest()
    assert (receipt.receipt_signature, receipt.signing_key_id) == SIGNER.sign(rfc8785.dumps(signed))
    assert receipt.signing_key_id == make_held().kid


def test_the_fields_are_those_of_the_interface() -> None:
    assert {
        "receipt_id", "grant_id", "provider_module_digest", "provider_receipt", "normalized_result",
        "verification_outcome", "effect_evidence", "result_hash", "receipt_signature", "signing_key_id", "started_at",
        "finished_at", "failure_class", "receipt_version", "principal", "action_id", "action_version", "request_hash",
        "plan_hash", "trace_id", "epoch", "policy_rule", "policy_version", "approval",
        "egress_networks", *OF_STANDING,
    } == FIELDS  # fmt: skip
    assert receipt_fields(make_receipt())["failure_class"] is None


def test_a_receipt_of_a_call_that_enters_no_network_does_not_speak_of_networks() -> None:
    receipt = make_receipt(attested=replace(ATTESTED, egress_networks=UNSET))
    assert "egress_networks" not in json.loads(encode_receipt(receipt))
    assert SIGNER.status(decode_receipt(encode_receipt(receipt))) == "verified"


@pytest.mark.parametrize("name", sorted(FIELDS - NOT_SIGNED))
def test_no_signed_field_can_be_changed(name: str) -> None:
    receipt = make_receipt()
    value = getattr(receipt, name)
    other: Any = {"a": 1} if isinstance(value, dict) else [1] if isinstance(value, list) else f"{value}x"
    assert SIGNER.status(receipt) == "verified"
    assert SIGNER.status(changed(receipt, **{name: other})) == "signature_invalid"


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    ("output", "kept"),
    [
        ({"é": 1.5, "a": [None]}, {"é": 1.5, "a": [None]}),
        ("text", {"value": "text"}),
        (None, {"value": None}),
        ([1, 2], {"value": [1, 2]}),
        ({"id": 2**63, "ok": 1}, {"id": "9223372036854775808", "ok": 1}),
        ({"n": float("nan")}, {"n": "nan"}),
        ({"n": [1e16, 1.5e300]}, {"n": ["1e+16", 1.5e300]}),
        ({"t": "a\ud800b"}, {"t": "a\\ud800b"}),
        ({"\ud800": 1}, {"\\ud800": 1}),
        (_deep(50_000), {"not_kept": "nested too deeply"}),
    ],
)
def test_a_receipt_can_be_made_of_whatever_a_provider_returns(output: Any, kept: Any) -> None:
    receipt = make_receipt(provider_receipt=output)
    assert receipt.provider_receipt == kept
    assert SIGNER.status(receipt) == "verified"
    assert decode_receipt(encode_receipt(receipt)) == receipt


def test_a_number_without_a_durable_form_keeps_its_shape() -> None:
    receipt = make_receipt(
        normalized_result={"kind": "provider_failure", "reason": "\udfff"}, effect_evidence=[{"rows": 2**64}],
    )  # fmt: skip
    assert receipt.normalized_result == {"kind": "provider_failure", "reason": "\\udfff"}
    assert receipt.effect_evidence == [{"rows": str(2**64)}]
    assert SIGNER.status(receipt) == "verified"


def test_a_number_without_a_durable_form_keeps_the_approver() -> None:
    approval = ReceiptDecision("apr_1", "ops", "thumbprint", "jti_1")
    receipt = make_receipt(attested=changed(ATTESTED, approval=approval), provider_receipt={"rows": 2**64})
    again = decode_receipt(encode_receipt(receipt))
    assert (again.approval, again.provider_receipt) == (approval, {"rows": str(2**64)})
    assert SIGNER.status(again) == "verified"
    assert receipt.hash == "sha256:" + hashlib.sha256(rfc8785.dumps(json.loads(encode_receipt(receipt)))).hexdigest()


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), VALUES), st.lists(VALUES, max_size=3))
def test_stored_receipts_still_verify(output: dict[str, Any], evidence: list[Any]) -> None:
    receipt = make_receipt(provider_receipt=output, effect_evidence=evidence)
    stored = encode_receipt(receipt)
    assert stored == rfc8785.dumps(json.loads(stored))
    again = decode_receipt(stored)
    assert SIGNER.status(again) == "verified"
    assert envelope_of(again) == envelope_of(receipt)


def test_a_receipt_from_before_signing_has_no_signature() -> None:
    fields = receipt_fields(make_receipt())
    del fields["receipt_signature"], fields["signing_key_id"]
    old = decode_receipt(json.dumps(fields).encode())
    assert SIGNER.status(old) == "unsigned"
    assert b"receipt_signature" not in encode_receipt(old)


def test_an_unknown_field_is_refused_because_no_signature_covers_it() -> None:
    fields = receipt_fields(make_receipt()) | {"extra": 1}
    with pytest.raises(ValueError, match="extra"):
        decode_receipt(json.dumps(fields).encode())
