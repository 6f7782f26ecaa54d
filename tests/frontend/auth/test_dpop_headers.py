"""The verifier's memory of headers: it saves work for the same bytes and never accepts a refused header."""

import pytest

from frontend.auth.dpop import CACHED_HEADERS, MAX_CACHED_CHARACTERS, DpopVerifier, Proof
from tests.frontend.auth.test_dpop import BASE, KEY, NOW, PATH, TOKEN, check, good, refusal
from tests.support.proofs import Key, assemble, b64, compact_json, header_of, payload_of


@pytest.fixture
def verifier() -> DpopVerifier:
    """A verifier that has accepted a proof of KEY, so that it remembers the header."""
    seasoned = DpopVerifier(BASE)
    check(good(), verifier=seasoned)
    return seasoned


def header_segment(text: str) -> str:
    return text.partition(".")[0]


def test_the_same_header_is_not_read_again(verifier: DpopVerifier) -> None:
    (header,) = verifier.headers
    verifier.headers[header] = verifier.headers[header]._replace(jkt=Key().jkt)
    assert "bound to" in refusal(good(), verifier=verifier)


def test_a_second_proof_under_a_remembered_header_tells_its_own(verifier: DpopVerifier) -> None:
    assert check(good(jti="again"), verifier=verifier) == Proof("again", int(NOW), KEY.jkt)


def test_a_remembered_header_is_still_held_against_the_key_of_the_token(verifier: DpopVerifier) -> None:
    assert "bound to" in refusal(good(), verifier=verifier, key=Key())
    check(good(), verifier=verifier, expected=None)


def test_every_change_of_one_character_in_a_remembered_header_is_read_whole(verifier: DpopVerifier) -> None:
    header = header_segment(good())
    payload = b64(compact_json(payload_of("POST", BASE + PATH, TOKEN, now=NOW)))
    for place, old in enumerate(header):
        signed = f"{header[:place]}{'A' if old != 'A' else 'B'}{header[place + 1 :]}.{payload}"
        refusal(f"{signed}.{b64(KEY.signature(signed.encode()))}", verifier=verifier)
    assert list(verifier.headers) == [header]


def test_only_headers_of_proofs_that_held_are_remembered() -> None:
    verifier = DpopVerifier(BASE)
    signed, _, signature = good().rpartition(".")
    refusal(f"{signed}.{b64(Key().signature(signed.encode()))}", verifier=verifier)
    refusal(good(htm="GET"), verifier=verifier)
    refusal(good(), verifier=verifier, key=Key())
    assert not verifier.headers
    check(f"{signed}.{signature}", verifier=verifier)
    assert list(verifier.headers) == [header_segment(signed)]


def test_the_headers_remembered_are_bounded_and_the_longest_unused_leaves_first() -> None:
    verifier = DpopVerifier(BASE)
    check(good(header={"kid": "first"}), verifier=verifier)
    check(good(header={"kid": "second"}), verifier=verifier)
    first, second = verifier.headers
    check(good(header={"kid": "first"}), verifier=verifier)
    for number in range(CACHED_HEADERS - 2):
        verifier.headers[str(number)] = verifier.headers[first]
    check(good(header={"kid": "third"}), verifier=verifier)
    assert len(verifier.headers) == CACHED_HEADERS
    assert first in verifier.headers
    assert second not in verifier.headers


def test_a_long_header_is_accepted_and_not_remembered() -> None:
    verifier = DpopVerifier(BASE)
    header = compact_json(header_of(KEY, kid="k" * MAX_CACHED_CHARACTERS))
    check(assemble(KEY, header, compact_json(payload_of("POST", BASE + PATH, TOKEN, now=NOW))), verifier=verifier)
    assert not verifier.headers
