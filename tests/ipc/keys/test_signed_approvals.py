"""Operators' signatures of decisions, read and compared with a hold, for any input."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.keys.jws import MAX_AGE_SECONDS, MAX_AHEAD_SECONDS, es256_numbers, is_recent, split
from ipc.keys.signed_approvals import MAX_CHARACTERS, SignatureRefused, Subject, check_statement, read
from tests.support.proofs import ABSENT, Key, b64, compact_json
from tests.support.signed_approvals import signature_of

KEY, NOW = Key(), 1_790_000_000.0
DETAIL = {"approval_id": "apr_1", "action_id": "pay", "plan_hash": "sha256:1", "shown_hash": "sha256:2"}
SUBJECT = Subject(("http://gateway.test", "http://localhost:3000"), "apr_1", "pay", "sha256:1", "sha256:2", "ann")
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def a_signature(header: dict[str, Any] | None = None, **claims: Any) -> str:
    return signature_of(KEY, DETAIL, header, **({"iat": NOW} | claims))


def test_a_good_one_says_who_signed_what() -> None:
    signed = read(a_signature(operator="ann", learn_domain="a.example"))
    assert (signed.jkt, signed.statement.decision, signed.statement.learn_domain) == (KEY.jkt, "approve", "a.example")
    check_statement(signed.statement, SUBJECT, NOW)


@given(st.text(max_size=200) | st.text(alphabet="abAB01-_.=", max_size=200) | st.binary(max_size=80).map(b64))
def test_noise_is_refused_and_never_repeated(noise: str) -> None:
    with pytest.raises(SignatureRefused) as refused:
        read(noise)
    assert len(noise) < 12 or noise not in str(refused.value)


def test_a_text_that_is_too_long_is_refused_for_that() -> None:
    with pytest.raises(SignatureRefused, match="longer"):
        read("a" * (MAX_CHARACTERS + 1))


@given(JSON, JSON)
def test_any_json_in_its_place_is_refused(header: Any, claims: Any) -> None:
    parts = [b64(json.dumps(part).encode("utf-8", "surrogatepass")) for part in (header, claims)]
    with pytest.raises(SignatureRefused):
        read(f"{parts[0]}.{parts[1]}.{b64(bytes([1]) * 64)}")


@given(
    st.sampled_from(["aud", "approval_id", "action_id", "plan_hash", "shown_hash", "decision", "iat", "operator"]), JSON
)
def test_a_claim_of_another_type_or_value_is_refused(name: str, value: Any) -> None:
    good = a_signature(operator="ann")
    others = {"operator": "null", "decision": '"deny"'}  # as good as the one that is given
    if json.dumps(value) in (json.dumps(given_to(name)), others.get(name)):
        return
    header, _, end = good.split(".")
    claims = {"aud": "http://gateway.test", **DETAIL, "decision": "approve", "iat": NOW, "operator": "ann", name: value}
    spoilt = f"{header}.{b64(json.dumps(claims).encode('utf-8', 'surrogatepass'))}.{end}"
    try:
        check_statement(read(spoilt).statement, SUBJECT, NOW)
    except SignatureRefused:
        return
    assert name in {"iat", "aud"}, (name, value)  # another time in the window, the same address written otherwise


def given_to(name: str) -> Any:
    fixed = {"aud": "http://gateway.test", "decision": "approve", "iat": NOW, "operator": "ann"}
    return (fixed | DETAIL)[name]


SPOILT: dict[str, Callable[[], str]] = {
    "two parts": lambda: a_signature().rpartition(".")[0],
    "four parts": lambda: a_signature() + ".AA",
    "padded": lambda: a_signature() + "==",
    "a short signature": lambda: a_signature()[:-2],
    "r and s of nothing": lambda: a_signature().rpartition(".")[0] + "." + b64(bytes(64)),
    "a member twice": lambda: ".".join(
        [a_signature().split(".")[0], b64(compact_json(DETAIL)[:-1] + b',"action_id":"x"}'), b64(bytes([1]) * 64)]
    ),
    "no type": lambda: a_signature({"typ": ABSENT}),
    "a symmetric algorithm": lambda: a_signature({"alg": "HS256"}),
    "no key": lambda: a_signature({"jwk": ABSENT}),
    "a name of a key": lambda: a_signature({"kid": "x"}),
    "a private key": lambda: a_signature({"jwk": KEY.jwk | {"d": "AA"}}),
    "a claim that is not known": lambda: a_signature(exp=NOW),
    "a claim that is missing": lambda: a_signature(shown_hash=ABSENT),
    "another decision": lambda: a_signature(decision="maybe"),
    "a time in words": lambda: a_signature(iat="now"),
    "a time that is true": lambda: a_signature(iat=True),
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_one_is_refused(spoilt: Callable[[], str]) -> None:
    with pytest.raises(SignatureRefused):
        read(spoilt())


@pytest.mark.parametrize("member", ["approval_id", "action_id", "plan_hash", "shown_hash", "operator"])
def test_each_claim_is_held_against_the_hold(member: str) -> None:
    statement = read(a_signature(operator="ann")).statement
    with pytest.raises(SignatureRefused, match=member):
        another: dict[str, Any] = {member: "another"}
        check_statement(statement, SUBJECT._replace(**another), NOW)
    for others in (("https://gateway.test", "http://localhost:3000"), ()):
        with pytest.raises(SignatureRefused, match="aud"):
            check_statement(statement, SUBJECT._replace(addresses=others), NOW)


def test_only_addresses_of_the_gateway_are_accepted() -> None:
    for aud in SUBJECT.addresses:
        check_statement(read(a_signature(aud=aud)).statement, SUBJECT, NOW)
    for aud in ("http://localhost:3001", "https://localhost:3000", "localhost:3000", ""):
        with pytest.raises(SignatureRefused, match="aud"):
            check_statement(
                read(a_signature(aud=aud)).statement, SUBJECT._replace(addresses=(*SUBJECT.addresses, "")), NOW
            )


def test_an_address_may_be_written_in_any_way_that_a_proof_may_write_it() -> None:
    for aud in ("http://gateway.test/", "HTTP://Gateway.Test:80"):
        check_statement(read(a_signature(aud=aud)).statement, SUBJECT, NOW)


def test_the_window_of_time_is_that_of_a_proof_and_patience_is_for_the_past_alone() -> None:
    for age, patience, fits in (
        (MAX_AGE_SECONDS, 0, True), (MAX_AGE_SECONDS + 1, 0, False), (MAX_AGE_SECONDS + 1, 5, True),
        (-MAX_AHEAD_SECONDS, 0, True), (-MAX_AHEAD_SECONDS - 1, 0, False), (-MAX_AHEAD_SECONDS - 1, 5, False),
    ):  # fmt: skip
        assert is_recent(NOW - age, NOW, patience) is fits


def test_the_parts_of_a_jws_are_three() -> None:
    assert split("a.b.c") == ("a.b", "a", "b", "c")
    for text in ("", "a", "a.b", "a..c", "a.b.c.d"):
        with pytest.raises(ValueError, match="three parts"):
            split(text)
    assert es256_numbers(b64(bytes(31) + b"\x01" + bytes(31) + b"\x02")) == (1, 2)
