"""Receipt keys."""

from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.texts.encoding import b64url_decode
from notary.ledger.receipts import LedgerReceipt, decode_receipt, encode_receipt
from notary.signing.keysets import public_jwk
from notary.signing.receipt_keys import ReceiptKeys, signature_status
from tests.notary.samples import JWKS, changed, make_held, make_receipt

# RFC 8037, appendix A.
RFC_SEED = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
RFC_X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
RFC_THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_a_public_key_is_shown_as_the_rfc_shows_it() -> None:
    key = Ed25519PrivateKey.from_private_bytes(b64url_decode(RFC_SEED))
    assert public_jwk(key) == {
        "kty": "OKP", "crv": "Ed25519", "x": RFC_X, "kid": RFC_THUMBPRINT, "use": "sig", "alg": "EdDSA",
    }  # fmt: skip


def test_each_receipt_has_the_status_of_its_signature() -> None:
    receipt, jwks = make_receipt(), JWKS
    other = make_held(2)
    assert signature_status(receipt, jwks) == "verified"
    assert signature_status(receipt, other.jwks()) == "unknown_kid"
    assert signature_status(receipt, {"keys": []}) == "unknown_kid"
    assert signature_status(changed(receipt, receipt_signature="00" * 64), jwks) == "signature_invalid"
    assert signature_status(changed(receipt, receipt_signature="not hex"), jwks) == "signature_invalid"
    assert signature_status(changed(receipt, result_hash="sha256:" + "0" * 64), jwks) == "signature_invalid"
    assert signature_status(changed(receipt, receipt_signature=None), jwks) == "unsigned"
    assert signature_status(changed(receipt, signing_key_id=None), jwks) == "unknown_kid"
    # A key that is listed, and did not sign.
    both = {"keys": [*jwks["keys"], *other.jwks()["keys"]]}
    assert signature_status(changed(receipt, signing_key_id=other.kid), both) == "signature_invalid"


STATUSES: dict[str, dict[str, Any]] = {
    "verified": {}, "unsigned": {"receipt_signature": msgspec.UNSET}, "unknown_kid": {"signing_key_id": "another"},
    "signature_invalid": {"grant_id": "another"},
}  # fmt: skip


@pytest.mark.parametrize("status", STATUSES)
def test_stored_bytes_have_the_status_of_their_receipt_and_are_shown_as_they_are(status: str) -> None:
    keys, stored = ReceiptKeys(JWKS), encode_receipt(changed(make_receipt(), **STATUSES[status]))
    assert [keys.show(stored) for _ in range(2)] == [(stored, status)] * 2


def test_a_receipt_that_verifies_is_neither_parsed_nor_verified_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the receipt was worked on again")

    keys, stored = ReceiptKeys(JWKS), encode_receipt(make_receipt())
    monkeypatch.setattr("notary.signing.receipt_keys.decode_receipt", fail)
    assert keys.show(stored).status == "verified"
    monkeypatch.setattr("notary.signing.receipt_keys.signed_in", fail)
    assert keys.show(stored).status == "verified"


def test_a_status_is_remembered_for_these_bytes_and_this_set_of_keys() -> None:
    stored, other = encode_receipt(make_receipt()), make_held(2)
    keys = ReceiptKeys(JWKS)
    assert keys.show(stored).status == "verified"
    assert keys.show(stored.replace(b'"grant_id":"', b'"grant_id":"x')).status == "signature_invalid"
    assert ReceiptKeys(other.jwks()).show(stored).status == "unknown_kid"


def test_no_more_than_a_bounded_number_of_statuses_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notary.signing.receipt_keys.MAX_KNOWN", 3)
    keys = ReceiptKeys(JWKS)
    stored = [encode_receipt(changed(make_receipt(), grant_id=f"g{n}")) for n in range(5)]
    for one in stored:
        keys.show(one)
    decoded: list[bytes] = []

    def decode(one: bytes) -> LedgerReceipt:
        decoded.append(one)
        return decode_receipt(one)

    monkeypatch.setattr("notary.signing.receipt_keys.decode_receipt", decode)
    for one in reversed(stored):
        keys.show(one)
    assert decoded == [stored[1], stored[0]]


def test_bytes_that_two_readers_could_read_differently_are_not_handed_through() -> None:
    receipt = make_receipt()
    stored = encode_receipt(receipt)
    twice = b'{"action_id":"another",' + stored[1:]
    spaced = stored.replace(b'","', b'", "', 1)
    assert spaced != stored
    for told in (twice, spaced):
        assert ReceiptKeys(JWKS).show(told) == (stored, "verified")


@pytest.mark.parametrize("stored", [b"", b"{}", b"[]", b'{"receipt_id":1}', b"\xff", b"[" * 5000])
def test_stored_bytes_that_are_no_receipt_are_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        ReceiptKeys(JWKS).show(stored)


def test_keys_of_other_kinds_in_a_jwks_are_passed_over() -> None:
    good = JWKS["keys"][0]
    others: list[dict[str, object]] = [
        {"kty": "EC", "kid": "a"}, {**good, "x": "AA", "kid": "a"}, {**good, "kid": 7},
        {"kty": "OKP", "crv": "Ed25519", "kid": "b"}, {**good, "kty": "EC", "kid": "c"},
        {**good, "crv": "Ed448", "kid": "d"}, {**good, "kid": ["e"]}, {**good, "x": 7, "kid": "f"},
    ]  # fmt: skip
    keys = ReceiptKeys({"keys": [*others, good]})
    assert make_held().kid in keys
    assert not [kid for kid in ("a", "b", "c", "d", "f") if kid in keys]


@pytest.mark.parametrize("jwks", [{}, {"keys": {}}, {"keys": "x"}, {"keys": [1]}, {"keys": [{}, None]}])
def test_a_malformed_key_set_is_reported(jwks: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a JWKS"):
        ReceiptKeys(jwks)
