"""The accepted forms of a proof, the edges of its time window, and a comparison with an oracle."""

import json
import time
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from latchgate._crypto import DPoPKeyPair, compute_ath

from frontend.auth.dpop import DpopVerifier, Proof, replay_key
from frontend.errors import GateError
from ipc.texts.encoding import b64url_decode
from tests.support.proofs import ORDER, Key, assemble, b64, compact_json, header_of, payload_of, proof

BASE = "http://127.0.0.1:3000"
PATH = "/v1/actions/a/execute"
TOKEN = "token.of.lease"
NOW = 1_763_723_533.25
KEY = Key()


def check(
    text: str, *, key: Key = KEY, base: str = BASE, path: str = PATH, method: str = "POST", now: float = NOW,
    expected: str | None = "", verifier: DpopVerifier | None = None,
) -> Proof:  # fmt: skip
    return (verifier or DpopVerifier(base)).verify(
        text,
        method=method,
        path=path,
        access_token=TOKEN,
        expected_jkt=key.jkt if expected == "" else expected,
        now=now,
    )


def good(**changes: Any) -> str:
    return proof(KEY, "POST", BASE + PATH, TOKEN, now=NOW, **changes)


def refusal(text: str, **how: Any) -> str:
    with pytest.raises(GateError) as refused:
        check(text, **how)
    assert refused.value.code == "invalid_dpop"
    return refused.value.cause or ""


def outcome(text: str) -> Proof | None:
    """The proof when it holds, None when it is refused as it should be; any other exception goes through."""
    try:
        return check(text)
    except GateError as refused:
        if refused.code != "invalid_dpop":
            raise
        return None


def test_a_good_proof_tells_its_jti_its_time_and_its_key() -> None:
    assert check(good(jti="one")) == Proof("one", int(NOW), KEY.jkt)


@pytest.mark.parametrize(
    ("iat", "holds"),
    [(NOW - 60, True), (NOW - 60.001, False), (NOW + 5, True), (NOW + 5.001, False), (int(NOW), True), (NOW, True)],
)
def test_the_window_is_sixty_seconds_past_and_five_ahead_to_the_edge(iat: float, holds: bool) -> None:
    if holds:
        assert check(good(iat=iat)).iat == iat
    else:
        assert "window" in refusal(good(iat=iat))


@pytest.mark.parametrize(
    "jti", ["j", "j" * 128, "0197e1c2-1111-7abc-8def-0123456789ab", "été ☃", "with space", "a.b/c"]
)
def test_any_text_of_one_to_128_characters_is_a_jti(jti: str) -> None:
    assert check(good(jti=jti)).jti == jti


@pytest.mark.parametrize(
    ("base", "htu"),
    [
        ("http://gate.test", "http://gate.test/v1/x"),
        ("http://gate.test", "http://gate.test:80/v1/x"),
        ("http://gate.test:80", "http://gate.test/v1/x"),
        ("http://gate.test/", "http://gate.test/v1/x"),
        ("HTTP://Gate.Test", "http://gate.test/v1/x"),
        ("http://gate.test", "HTTP://GATE.TEST/v1/x"),
        ("https://gate.test", "https://gate.test:443/v1/x"),
        ("https://gate.test:443/", "https://gate.test/v1/x"),
        ("http://gate.test", "http://gate.test/v1/x?a=1&b=2"),
        ("http://gate.test", "http://gate.test/v1/x#part"),
        ("http://gate.test", "http://gate.test/v1/x?a#part?b"),
        ("http://[::1]:3000", "http://[::1]:3000/v1/x"),
        ("http://gate.test/base", "http://gate.test/base/v1/x"),
        ("http://gate.test/base/", "http://gate.test/base/v1/x"),
    ],
)
def test_both_sides_of_htu_are_normalised_alike(base: str, htu: str) -> None:
    check(good(htu=htu), base=base, path="/v1/x")


@pytest.mark.parametrize(
    ("base", "htu"),
    [
        ("http://gate.test", "http://gate.test:8080/v1/x"),
        ("http://gate.test", "http://gate.test:443/v1/x"),
        ("http://gate.test:8080", "http://gate.test/v1/x"),
        ("https://gate.test", "http://gate.test/v1/x"),
        ("https://gate.test", "https://gate.test:80/v1/x"),
        ("http://gate.test/base", "http://gate.test/v1/x"),
        ("http://gate.test", "http://gate.test//v1/x"),
        ("http://gate.test", "http://gate.test/v1/%78"),
        ("http://gate.test", "http://gate.test./v1/x"),
        ("http://kate.test", "http://\u212aate.test/v1/x"),
    ],
)
def test_urls_that_normalisation_does_not_unify_stay_different(base: str, htu: str) -> None:
    assert "htu" in refusal(good(htu=htu), base=base, path="/v1/x")


def test_percent_encoding_and_case_of_the_path_are_compared_as_they_stand() -> None:
    check(good(htu=BASE + "/v1/a%2Fb"), path="/v1/a%2Fb")
    assert "htu" in refusal(good(htu=BASE + "/v1/a%2fb"), path="/v1/a%2Fb")
    assert "htu" in refusal(good(htu=BASE + "/v1/a/b"), path="/v1/a%2Fb")


def test_a_bare_authority_is_the_root() -> None:
    check(good(htu="http://127.0.0.1:3000?x=1"), path="/")


@pytest.mark.parametrize("base", ["", "gate.test", "ftp://gate.test", "http://", "http:///x", "http://gäte.test"])
def test_a_base_url_that_is_not_absolute_http_is_refused_at_start(base: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        DpopVerifier(base)


def test_high_s_and_low_s_are_both_signatures() -> None:
    signed = ".".join(good().split(".")[:2])
    r, s = KEY.numbers(signed.encode())
    for either in (s, ORDER - s):
        check(f"{signed}.{b64(r.to_bytes(32, 'big') + either.to_bytes(32, 'big'))}")


def test_white_space_inside_the_json_and_members_in_any_order_are_fine() -> None:
    header = json.dumps(dict(reversed(header_of(KEY).items())), indent=1).encode()
    payload = json.dumps(dict(reversed(payload_of("POST", BASE + PATH, TOKEN, now=NOW).items())), indent=2).encode()
    check(assemble(KEY, b" " + header, payload + b"\n"))


def test_unknown_header_members_and_claims_are_ignored() -> None:
    check(good(header={"kid": "k", "jku": "http://evil.test/"}, nonce="n", sub="someone", nested={"a": [1, None]}))


def test_members_that_libraries_put_into_public_jwks_are_tolerated() -> None:
    extra = {"alg": "ES256", "use": "sig", "kid": "k", "key_ops": ["verify"], "ext": True}
    check(good(header={"jwk": {**KEY.jwk, **extra}}))


def test_exp_and_nbf_in_a_proof_are_honoured_where_they_hold() -> None:
    check(good(exp=int(NOW) + 30, nbf=int(NOW)))
    check(good(nbf=NOW + 5, exp=NOW + 0.25))
    assert "nbf" in refusal(good(nbf=NOW + 5.25))
    assert "exp" in refusal(good(exp=NOW))


def test_a_point_off_the_curve_is_refused_even_when_it_is_what_is_expected() -> None:
    wrong = Key()
    y = int.from_bytes(b64url_decode(wrong.y), "big") ^ 1
    wrong.y = b64(y.to_bytes(32, "big"))
    text = proof(wrong, "POST", BASE + PATH, TOKEN, now=NOW)
    assert "not a point" in refusal(text, key=wrong)
    assert "not a point" in refusal(text, expected=None)


def test_without_an_expected_key_any_key_is_taken_and_named() -> None:
    other = Key()
    assert check(proof(other, "POST", BASE + PATH, TOKEN, now=NOW), expected=None).jkt == other.jkt


def test_a_proof_of_an_unbound_key_never_reaches_the_cache() -> None:
    verifier = DpopVerifier(BASE)
    refusal(proof(Key(), "POST", BASE + PATH, TOKEN, now=NOW), verifier=verifier)
    assert len(verifier.keys) == 0
    check(good(), verifier=verifier)
    check(good(), verifier=verifier)
    assert len(verifier.keys) == 1


def test_a_proof_may_have_4096_characters_and_no_more() -> None:
    spare = 4096 - len(good(note=""))
    fitting = good(note="n" * (spare * 3 // 4))
    assert len(fitting) == 4096
    longer = good(note="n" * (spare * 3 // 4 + 1))
    check(fitting)
    assert "too long" in refusal(longer)
    assert [DpopVerifier(BASE).signer_of(one) for one in (fitting, longer)] == [KEY.jkt, None]


def test_replay_keys_are_short_and_tell_jti_and_key_apart() -> None:
    keys = {replay_key(jkt, jti) for jkt in ("a" * 43, "b" * 43) for jti in ("1", "2", "ü" * 128)}
    assert len(keys) == 6
    assert {len(key) for key in keys} == {43}
    assert replay_key("a", "1") == replay_key("a", "1")


def test_the_public_client_makes_proofs_that_hold() -> None:
    pair = DPoPKeyPair.generate()
    text = pair.sign_proof("post", BASE.upper().replace("HTTP", "Http") + PATH + "?q=1", compute_ath(TOKEN))
    accepted = DpopVerifier(BASE).verify(
        text, method="POST", path=PATH, access_token=TOKEN, expected_jkt=None, now=time.time()
    )
    assert accepted.jti


def test_a_proof_by_pyjwt_holds() -> None:
    claims = payload_of("POST", BASE + PATH, TOKEN, now=NOW)
    check(jwt.encode(claims, KEY.private, "ES256", headers={"typ": "dpop+jwt", "jwk": KEY.jwk}))


@st.composite
def bent(draw: st.DrawFn) -> str:
    """A good proof with a few characters changed, dropped, put in or moved."""
    text = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(text) - 1))
        character = draw(st.sampled_from("AQgw-_+/=. \nZ9é") | st.characters())
        cut = draw(st.integers(0, 1))
        text = text[:place] + character + text[place + cut :]
    return text


SAMPLES = [
    good(jti="sample"),
    good(jti="s", note="n" * 7),
    assemble(KEY, compact_json(header_of(KEY)) + b" ", compact_json(payload_of("POST", BASE + PATH, TOKEN, now=NOW))),
]


@given(bent())
def test_whatever_signature_is_accepted_the_oracle_accepts_and_nothing_raises_but_gate_errors(text: str) -> None:
    if outcome(text) is None:
        return
    decoded = jwt.decode_complete(
        text, KEY.private.public_key(), ["ES256"], options={"verify_exp": False, "verify_iat": False}
    )
    assert decoded["header"]["jwk"] == KEY.jwk


@given(st.binary(min_size=64, max_size=64) | st.binary(max_size=80))
def test_a_signature_is_accepted_only_if_the_oracle_accepts_it(signature: bytes) -> None:
    signed = ".".join(SAMPLES[0].split(".")[:2])
    with pytest.raises(GateError):
        check(f"{signed}.{b64(signature)}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from(["typ", "alg", "jwk", "crit", "b64"]), JSON, max_size=2),
    st.dictionaries(st.sampled_from(["htm", "htu", "iat", "jti", "ath", "exp", "nbf"]), JSON, max_size=2),
    st.dictionaries(st.sampled_from(["kty", "crv", "x", "y", "d", "alg", "key_ops"]), JSON, max_size=2),
)
def test_any_json_in_any_place_gives_an_answer_or_invalid_dpop(
    header: dict[str, Any], claims: dict[str, Any], jwk: dict[str, Any]
) -> None:
    changed = {"jwk": {**KEY.jwk, **jwk}, **header}
    accepted = outcome(assemble(KEY, json.dumps(header_of(KEY, **changed)).encode(), compact_claims(claims)))
    if accepted is not None:
        assert accepted.jkt == KEY.jkt
        assert NOW - 60 <= accepted.iat <= NOW + 5


def compact_claims(changes: dict[str, Any]) -> bytes:
    return json.dumps(payload_of("POST", BASE + PATH, TOKEN, now=NOW, **changes)).encode()


@pytest.mark.parametrize("said", ["http://localhost:3000", "HTTP://LocalHost:3000"])
def test_another_name_of_the_same_address_holds_only_where_it_is_one(said: str) -> None:
    named = proof(KEY, "POST", said + PATH, TOKEN, now=NOW)
    both = DpopVerifier(BASE, ["http://localhost:3000"])
    assert check(named, verifier=both).jkt == KEY.jkt
    assert check(good(), verifier=both).jkt == KEY.jkt
    assert refusal(named) == f"htu is not the request's URI, which begins with {BASE}/"
    assert refusal(proof(KEY, "POST", "http://localhost:3001" + PATH, TOKEN, now=NOW), verifier=both)
