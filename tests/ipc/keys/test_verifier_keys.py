"""Verifier keys as texts: one form, with an id of its own."""

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.keys.verifier_keys import LOG, WITNESS, NoVerifierKey, VerifierKey, read_verifier_key

RAW = bytes(range(32))
KEY = VerifierKey("witness.example/w1", WITNESS, RAW)


def text_of(name: str = KEY.name, kind: int = WITNESS, raw: bytes = RAW, identifier: str = "") -> str:
    """As C2SP signed-note writes it down, with this id instead of its own if one is given."""
    data = bytes([kind]) + raw
    own = sha256(name.encode() + b"\n" + data).hexdigest()[:8]
    return f"{name}+{identifier or own}+{b64encode(data).decode()}"


def test_a_key_is_written_and_read_as_the_format_says() -> None:
    assert KEY.text == text_of()
    assert read_verifier_key(f" {text_of()}\n", WITNESS) == KEY
    assert read_verifier_key(text_of(kind=LOG)) == VerifierKey(KEY.name, LOG, RAW)


@pytest.mark.parametrize(
    "text",
    ["", "a+b", text_of(kind=LOG), text_of(kind=2), text_of(raw=RAW[:-1]), text_of(raw=RAW + b"x"),
     text_of(name=""), text_of(name="a b"), text_of(identifier="00000000"), text_of().upper(), text_of() + "=",
     text_of().replace(".example", ".example.org"), text_of()[:-4] + "AAAA", text_of().replace("+", "+ ", 1)],
)  # fmt: skip
def test_a_malformed_witness_key_is_refused(text: str) -> None:
    with pytest.raises(NoVerifierKey):
        read_verifier_key(text, WITNESS)


@given(st.text())
def test_noise_is_refused_or_a_key_that_is_written_so(text: str) -> None:
    try:
        key = read_verifier_key(text, WITNESS)
    except NoVerifierKey:
        return
    assert key.text == text.strip()
