"""The accepted forms of a webhook's secret."""

import pytest

from ipc.backends.webhooks import SecretUnfit, key_of

KEYS = {
    "x" * 16: b"x" * 16, "x" * 512: b"x" * 512, "a b" * 8: b"a b" * 8, "WHSEC_" + "A" * 24: b"WHSEC_" + b"A" * 24,
    "whsec_" + "A" * 22 + "==": bytes(16), "whsec_" + "A" * 24: bytes(18),
}  # fmt: skip
UNFIT = [
    "", "x" * 15, "x" * 513, " " + "x" * 20, "x" * 20 + " ", "x" * 20 + "\n", "é" * 20, "x\x00" * 10, "x\ty" * 10,
    "whsec_", "whsec_" + "A" * 20, "whsec_" + "?" * 24, "whsec_" + "A" * 23,
]  # fmt: skip


@pytest.mark.parametrize(("secret", "key"), KEYS.items())
def test_a_secret_stands_for_a_key(secret: str, key: bytes) -> None:
    assert key_of(secret) == key


@pytest.mark.parametrize("secret", UNFIT)
def test_an_unfit_secret_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(SecretUnfit) as refused:
        key_of(secret)
    assert len(secret) < 3 or secret not in str(refused.value)
