"""Signatures, as a receiver checks them with a public library or by hand."""

import base64
import hashlib
import hmac
import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

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


@pytest.mark.parametrize("change", ["secret", "body", "id", "timestamp"])
def test_a_public_library_refuses_whatever_else(change: str) -> None:
    headers, body, view = signature_headers(key_of(SECRETS[0]), "evt_1", int(time.time()), BODY), BODY, SECRETS[0]
    if change == "secret":
        view = SECRETS[1]
    elif change == "body":
        body += b" "
    elif change == "id":
        headers["webhook-id"] = "evt_2"
    else:
        headers["webhook-timestamp"] = str(int(headers["webhook-timestamp"]) - 1)
    with pytest.raises(WebhookVerificationError):
        receivers_view(view).verify(body, headers)


@pytest.mark.parametrize(("age", "is_taken"), [(240, True), (-240, True), (400, False), (-400, False)])
def test_a_receiver_may_refuse_what_is_five_minutes_off(age: int, is_taken: bool) -> None:
    headers = signature_headers(key_of(SECRETS[0]), "evt_1", int(time.time()) - age, BODY)
    if is_taken:
        receivers_view(SECRETS[0]).verify(BODY, headers)
        return
    with pytest.raises(WebhookVerificationError):
        receivers_view(SECRETS[0]).verify(BODY, headers)


def test_the_body_alone_is_signed_too() -> None:
    headers = signature_headers(key_of(SECRETS[1]), "evt_1", 1, BODY)
    expected = hmac.new(SECRETS[1].encode(), BODY, hashlib.sha256).hexdigest()
    assert headers["x-gateway-signature"] == f"sha256={expected}"


def test_time_is_told_in_whole_seconds() -> None:
    assert signature_headers(b"k" * 16, "evt_1", 1_790_000_000, BODY)["webhook-timestamp"] == "1790000000"
