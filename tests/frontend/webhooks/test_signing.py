"""Signatures, as a receiver checks them with a public library or by hand."""

import base64
import hashlib
import hmac
import time

import pytest
from standardwebhooks import Webhook

from frontend.webhooks.signing import signature_headers
from ipc.backends.webhooks import key_of

BODY = '{"id":"evt_1","name":"é"}'.encode()
SECRETS = ["whsec_" + base64.b64encode(bytes(range(32))).decode(), "a secret of some words", "x" * 16, "y" * 512]


def receivers_view(secret: str) -> Webhook:
    return Webhook(secret if secret.startswith("whsec_") else secret.encode())


@pytest.mark.parametrize("secret", SECRETS)
def test_a_public_library_verifies_a_delivery(secret: str) -> None:
    headers = signature_headers(key_of(secret), "evt_1", int(time.time()), BODY)
    assert receivers_view(secret).verify(BODY, headers) == {"id": "evt_1", "name": "é"}


def test_the_body_alone_is_signed_too() -> None:
    headers = signature_headers(key_of(SECRETS[1]), "evt_1", 1, BODY)
    expected = hmac.new(SECRETS[1].encode(), BODY, hashlib.sha256).hexdigest()
    assert headers["x-gateway-signature"] == f"sha256={expected}"
