"""The verifier's memory of headers: it saves work for the same bytes and never accepts a refused header."""

from typing import Any

import pytest

from frontend.auth.dpop import CACHED_HEADERS, MAX_CACHED_CHARACTERS, DpopVerifier, Proof
from frontend.errors import GateError
from tests.support.proofs import Key, assemble, b64, compact_json, header_of, payload_of, proof

BASE = "http://127.0.0.1:3000"
PATH = "/v1/actions/a/execute"
TOKEN = "token.of.lease"
NOW = 1_763_723_533
KEY = Key()


@pytest.fixture
def verifier() -> DpopVerifier:
    """A verifier that has accepted a proof of KEY, so that it remembers the header."""
    seasoned = DpopVerifier(BASE)
    check(seasoned, good())
    return seasoned


def good(key: Key = KEY, **changes: Any) -> str:
    return proof(key, "POST", BASE + PATH, TOKEN, now=NOW, **changes)


def check(verifier: DpopVerifier, text: str, jkt: str | None = KEY.jkt) -> Proof:
    return verifier.verify(text, method="POST", path=PATH, access_token=TOKEN, expected_jkt=jkt, now=NOW)


def refusal(verifier: DpopVerifier, text: str, jkt: str | None = KEY.jkt) -> str:
    with pytest.raises(GateError) as refused:
        check(verifier, text, jkt)
    assert refused.value.code == "invalid_dpop"
    return refused.value.cause or ""


def header_segment(text: str) -> str:
    return text.partition(".")[0]


def test_the_same_header_is_not_read_again(verifier: DpopVerifier) -> None:
    (header,) = verifier.headers
    verifier.headers[header] = verifier.headers[header]._replace(jkt=Key().jkt)
    assert "bound to" in refusal(verifier, good())


def test_a_second_proof_under_a_remembered_header_tells_its_own(verifier: DpopVerifier) -> None:
    assert check(verifier, good(jti="again")) == Proof("again", NOW, KEY.jkt)


def test_a_remembered_header_is_still_held_against_the_key_of_the_token(verifier: DpopVerifier) -> None:
    assert "bound to" in refusal(verifier, good(), Key().jkt)
    check(verifier, good(), None)


def test_every_change_of_one_character_in_a_remembered_header_is_read_whole(verifier: DpopVerifier) -> None:
    header = header_segment(good())
    payload = b64(compact_json(payload_of("POST", BASE + PATH, TOKEN, now=NOW)))
    for place, old in enumerate(header):
        signed = f"{header[:place]}{'A' if old != 'A' else 'B'}{header[place + 1 :]}.{payload}"
        refusal(verifier, f"{signed}.{b64(KEY.signature(signed.encode()))}")
    assert list(verifier.headers) == [header]


def test_only_headers_of_proofs_that_held_are_remembered() -> None:
    verifier = DpopVerifier(BASE)
    signed, _, signature = good().rpartition(".")
    refusal(verifier, f"{signed}.{b64(Key().signature(signed.encode()))}")
    refusal(verifier, good(htm="GET"))
    refusal(verifier, good(), Key().jkt)
    assert not verifier.headers
    check(verifier, f"{signed}.{signature}")
    assert list(verifier.headers) == [header_segment(signed)]


def test_the_headers_remembered_are_bounded_and_the_longest_unused_leaves_first() -> None:
    verifier = DpopVerifier(BASE)
    check(verifier, good(header={"kid": "first"}))
    check(verifier, good(header={"kid": "second"}))
    first, second = verifier.headers
    check(verifier, good(header={"kid": "first"}))
    for number in range(CACHED_HEADERS - 2):
        verifier.headers[str(number)] = verifier.headers[first]
    check(verifier, good(header={"kid": "third"}))
    assert len(verifier.headers) == CACHED_HEADERS
    assert first in verifier.headers
    assert second not in verifier.headers


def test_a_long_header_is_accepted_and_not_remembered() -> None:
    verifier = DpopVerifier(BASE)
    header = compact_json(header_of(KEY, kid="k" * MAX_CACHED_CHARACTERS))
    check(verifier, assemble(KEY, header, compact_json(payload_of("POST", BASE + PATH, TOKEN, now=NOW))))
    assert not verifier.headers
