"""Receipt keys."""

import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontend.auth.encoding import b64url_decode
from frontend.auth.keyfiles import KeyFileError, write_private, write_private_key
from frontend.auth.keysets import public_jwk
from frontend.auth.make_keys import make_keys
from frontend.auth.signing_keys import receipt_place, rotate
from frontend.evidence.signing import ReceiptKeys, ReceiptSigner, signature_status
from tests.frontend.evidence.samples import SIGNER, changed, make_receipt, make_signer

# RFC 8037, appendix A.
RFC_SEED = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
RFC_X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
RFC_THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_a_public_key_is_shown_as_the_rfc_shows_it() -> None:
    key = Ed25519PrivateKey.from_private_bytes(b64url_decode(RFC_SEED))
    assert public_jwk(key) == {
        "kty": "OKP", "crv": "Ed25519", "x": RFC_X, "kid": RFC_THUMBPRINT, "use": "sig", "alg": "EdDSA",
    }  # fmt: skip


def test_statuses() -> None:
    receipt, jwks = make_receipt(), SIGNER.jwks()
    other = make_signer(2)
    assert signature_status(receipt, jwks) == "verified"
    assert signature_status(receipt, other.jwks()) == "unknown_kid"
    assert signature_status(receipt, {"keys": []}) == "unknown_kid"
    assert signature_status(changed(receipt, receipt_signature="00" * 64), jwks) == "signature_invalid"
    assert signature_status(changed(receipt, receipt_signature="not hex"), jwks) == "signature_invalid"
    # A key that is listed, and did not sign.
    both = {"keys": [*jwks["keys"], *other.jwks()["keys"]]}
    assert signature_status(changed(receipt, signing_key_id=other.kid), both) == "signature_invalid"


def test_a_shown_receipt_has_its_status_and_is_otherwise_as_stored() -> None:
    receipt = make_receipt()
    shown = SIGNER.shown(receipt)
    assert shown.pop("signature_status") == "verified"
    assert json.loads(json.dumps(shown))["receipt_id"] == receipt.receipt_id


def test_keys_made_for_a_gateway_can_be_opened(tmp_path: Path) -> None:
    make_keys(tmp_path / "state")
    jwks_path = tmp_path / "state" / "receipt-keys.jwks.json"
    before = jwks_path.read_bytes()
    signer = ReceiptSigner.open(tmp_path / "state" / "keys" / "receipt.pem", jwks_path)
    (listed,) = json.loads(before)["keys"]
    assert listed.pop("created_at")
    assert signer.jwks() == {"keys": [listed]}
    assert jwks_path.read_bytes() == before
    assert signer.shown(make_receipt(signer))["signature_status"] == "verified"


def test_a_new_key_joins_the_old_ones_in_the_file(tmp_path: Path) -> None:
    key_path, jwks_path = tmp_path / "receipt.pem", tmp_path / "jwks.json"
    write_private_key(key_path, Ed25519PrivateKey.generate())
    first = ReceiptSigner.open(key_path, jwks_path)
    old = make_receipt(first)
    write_private_key(key_path, Ed25519PrivateKey.generate())
    second = ReceiptSigner.open(key_path, jwks_path)
    assert [jwk["kid"] for jwk in second.jwks()["keys"]] == [second.kid, first.kid]
    assert [jwk["kid"] for jwk in json.loads(jwks_path.read_bytes())["keys"]] == [first.kid, second.kid]
    assert stat.S_IMODE(jwks_path.stat().st_mode) == 0o600
    assert second.shown(old)["signature_status"] == "verified"
    assert second.shown(make_receipt(second))["signing_key_id"] == second.kid
    shown = {name for jwk in second.jwks()["keys"] for name in jwk}
    assert shown == {"alg", "kty", "crv", "x", "kid", "use"}


def test_another_front_s_receipt_is_known_before_this_front_has_followed_the_rotation(tmp_path: Path) -> None:
    make_keys(tmp_path)
    place = receipt_place(tmp_path / "keys" / "receipt.pem", tmp_path / "receipt-keys.jwks.json")
    here = ReceiptSigner.open(place.key, tmp_path / "receipt-keys.jwks.json")
    before = here.kid
    rotate(place)
    there = ReceiptSigner.open(place.key, tmp_path / "receipt-keys.jwks.json")
    assert here.shown(make_receipt(there))["signature_status"] == "verified"
    assert (here.kid, here.jwks()["keys"][0]["kid"]) == (before, before)
    assert make_receipt(here).signing_key_id == before
    assert here.shown(make_receipt(make_signer(7)))["signature_status"] == "unknown_kid"


def test_key_and_set_are_replaced_as_one_or_not_at_all() -> None:
    signer, other = make_signer(3), make_signer(4)
    kid = signer.kid
    with pytest.raises(ValueError, match="does not list"):
        signer.use(Ed25519PrivateKey.generate(), other.jwks())
    assert signer.shown(make_receipt(signer))["signature_status"] == "verified"
    assert signer.kid == kid


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[1]}', b"[" * 100_000])
def test_a_file_that_is_no_jwks_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    key_path, jwks_path = tmp_path / "receipt.pem", tmp_path / "jwks.json"
    write_private_key(key_path, Ed25519PrivateKey.generate())
    write_private(jwks_path, content)
    with pytest.raises(KeyFileError, match="not a JWKS"):
        ReceiptSigner.open(key_path, jwks_path)
    assert jwks_path.read_bytes() == content


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    write_private_key(tmp_path / "receipt.pem", ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(KeyFileError, match="not an Ed25519 key"):
        ReceiptSigner.open(tmp_path / "receipt.pem", tmp_path / "jwks.json")


def test_a_signer_whose_key_is_not_listed_is_not_made() -> None:
    with pytest.raises(ValueError, match="does not list"):
        ReceiptSigner(Ed25519PrivateKey.generate(), {"keys": []})


def test_keys_of_other_kinds_in_a_jwks_are_passed_over() -> None:
    good = SIGNER.jwks()["keys"][0]
    others: list[dict[str, object]] = [
        {"kty": "EC", "kid": "a"}, {**good, "x": "AA", "kid": "a"}, {**good, "kid": 7},
        {"kty": "OKP", "crv": "Ed25519", "kid": "b"},
    ]  # fmt: skip
    keys = ReceiptKeys({"keys": [*others, good]})
    assert SIGNER.kid in keys
    assert "a" not in keys
    assert "b" not in keys
