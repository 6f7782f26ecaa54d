"""Public keys: thumbprints, what a JWK may hold, points on the curve, the bounded cache."""

import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from frontend.auth.keys import CACHED_KEYS, KeyCache, parse_jwk, parse_point
from ipc.keys.jwk import KeyRefused, p256_thumbprint, thumbprint
from notary.signing.keysets import public_key_of
from tests.support.proofs import ABSENT, Key, b64


def test_the_thumbprint_is_that_of_rfc_7638() -> None:
    example = {
        "kty": "RSA",
        "n": (
            "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3"
            "oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdA"
            "ZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-"
            "kEgU8awapJzKnqDKgw"
        ),
        "e": "AQAB",
    }
    assert thumbprint(example) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


def test_the_short_way_to_a_p256_thumbprint_gives_the_same() -> None:
    key = Key()
    assert p256_thumbprint(key.x, key.y) == thumbprint(key.jwk) == key.jkt


def test_the_gateways_form_of_a_key_equals_the_clients() -> None:
    key = Key()
    public_key = parse_jwk(key.jwk)
    assert public_key == public_key_of(key.private)
    assert public_key.jwk() == key.jwk
    assert jwt.PyJWK(public_key.jwk()).key.public_numbers() == key.private.public_key().public_numbers()


def test_a_key_of_another_curve_is_not_ours() -> None:
    with pytest.raises(KeyRefused):
        public_key_of(ec.generate_private_key(ec.SECP384R1()))


@pytest.mark.parametrize(
    ("changes", "member"),
    [
        ({"kty": "RSA"}, "kty"), ({"kty": ABSENT}, "kty"), ({"crv": "P-384"}, "crv"), ({"crv": None}, "crv"),
        ({"x": ABSENT}, "x"), ({"x": 1}, "x"), ({"x": ""}, "x"), ({"y": "A" * 42}, "y"), ({"y": "A" * 44}, "y"),
        ({"y": "é" * 43}, "y"), ({"x": "=" * 43}, ""), ({"x": "A" * 42 + "B"}, ""), ({"x": b64(b"\xff" * 32)}, ""),
        ({"x": b64(bytes(32)), "y": b64(bytes(32))}, ""), ({"d": "AA"}, "d"), ({"d": None}, "d"), ({"k": "AA"}, "k"),
        ({"p": "AA"}, "p"), ({"x5u": "http://evil.test"}, ""), ({"use": "enc"}, ""), ({"alg": "none"}, ""),
        ({"key_ops": ["sign"]}, ""), ({"key_ops": ["verify", "sign"]}, ""), ({"ext": "yes"}, ""), ({"kid": 1}, ""),
        ({"<b>": 1}, ""),
    ],
)  # fmt: skip
def test_a_jwk_that_is_not_a_p256_public_key_is_refused(changes: dict[str, Any], member: str) -> None:
    jwk = {name: value for name, value in {**Key().jwk, **changes}.items() if value is not ABSENT}
    with pytest.raises(KeyRefused) as refused:
        parse_jwk(jwk)
    assert refused.value.member == member
    assert "<b>" not in str(refused.value)


@pytest.mark.parametrize("missing", ["kty", "crv", "x", "y"])
def test_another_member_in_the_place_of_a_needed_one_is_refused(missing: str) -> None:
    jwk = {**Key().jwk, "d": "AA"}
    del jwk[missing]
    with pytest.raises(KeyRefused):
        parse_jwk(jwk)


@pytest.mark.parametrize("value", [None, [], "EC", 1, {}, [Key().jwk], json.dumps(Key().jwk)])
def test_a_jwk_is_an_object_with_members(value: object) -> None:
    with pytest.raises(KeyRefused):
        parse_jwk(value)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_coordinates_that_parse_are_on_the_curve(x: bytes, y: bytes) -> None:
    p = 2**256 - 2**224 + 2**192 + 2**96 - 1
    b = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
    left, right = int.from_bytes(x, "big"), int.from_bytes(y, "big")
    is_on_curve = left < p and right < p and (right**2 - left**3 + 3 * left - b) % p == 0
    try:
        parse_point(b64(x), b64(y))
    except KeyRefused:
        assert not is_on_curve
    else:
        assert is_on_curve


def test_the_cache_gives_the_same_key_again_and_forgets_the_one_longest_unused() -> None:
    cache = KeyCache(2)
    one, two, three = Key(), Key(), Key()
    first = cache.public_key(one.x, one.y)
    second = cache.public_key(two.x, two.y)
    assert cache.public_key(one.x, one.y) is first
    cache.public_key(three.x, three.y)
    assert len(cache) == 2
    assert cache.public_key(one.x, one.y) is first
    assert cache.public_key(two.x, two.y) is not second


def test_the_cache_never_keeps_what_it_refused_and_is_bounded() -> None:
    cache = KeyCache()
    with pytest.raises(KeyRefused):
        cache.public_key(b64(b"\xff" * 32), b64(b"\xff" * 32))
    assert len(cache) == 0
    assert CACHED_KEYS == 2048
