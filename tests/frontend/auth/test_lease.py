"""Leases: what is asked for, what is issued, and what is accepted back."""

import base64
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from frontend.auth import lease as module
from frontend.auth.keys import parse_jwk, public_key_of
from frontend.auth.lease import MAX_CALLS, IssuedLease, LeaseAuthority, parse_lease_request
from frontend.clock import SystemClock, iso
from frontend.errors import GateError
from tests.support.proofs import ABSENT, Key, b64

NOW = 1_763_726_400.75


class Time:
    def __init__(self) -> None:
        self.wall = NOW

    def clock(self) -> SystemClock:
        return SystemClock(0, wall=lambda: self.wall, boot=lambda: self.wall - NOW)


SIGNING_KEY = ec.generate_private_key(ec.SECP256R1())
KID = public_key_of(SIGNING_KEY).jkt
AGENT = Key()


def authority(time: Time | None = None, ttl: int = 300) -> LeaseAuthority:
    return LeaseAuthority(SIGNING_KEY, (time or Time()).clock(), ttl)


def issue(by: LeaseAuthority, **changes: Any) -> IssuedLease:
    asked: dict[str, Any] = {
        "principal": "billing-agent",
        "owner": "team-billing",
        "scopes": ("tools:call",),
        "max_calls": 12,
        "jwk": parse_jwk(AGENT.jwk),
        "epoch": 3,
        "identity_method": "peercred",
    }
    return by.issue(**{**asked, **changes})


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(GateError) as refused:
        call()
    return refused.value.code


# ------------------------------------------------------------------ requests

GOOD: dict[str, Any] = {"scopes": ["tools:call"], "dpop_jwk": AGENT.jwk, "budgets": {"max_calls": 5}}


@pytest.mark.parametrize(
    ("budgets", "max_calls"),
    [
        (ABSENT, None), (None, None), ({}, None), ({"max_calls": None}, None), ({"max_cost_usd_cents": 7}, None),
        ({"max_calls": 1}, 1), ({"max_calls": MAX_CALLS, "other": []}, MAX_CALLS),
    ],
)  # fmt: skip
def test_a_request_says_scopes_key_and_perhaps_a_budget(budgets: Any, max_calls: int | None) -> None:
    body = {name: value for name, value in {**GOOD, "budgets": budgets, "agent_id": "x"}.items() if value is not ABSENT}
    found = parse_lease_request(body)
    assert (found.scopes, found.jwk.jkt, found.max_calls) == (("tools:call",), AGENT.jkt, max_calls)


def test_the_largest_request_is_accepted() -> None:
    scopes = [f"scope:{place}" for place in range(32)]
    found = parse_lease_request({**GOOD, "scopes": scopes, "budgets": {"max_calls": 2**31 - 1}})
    assert (found.scopes, found.max_calls) == (tuple(scopes), 2**31 - 1)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"scopes": ABSENT}, "scopes:"), ({"scopes": None}, "scopes:"), ({"scopes": []}, "scopes:"),
        ({"scopes": "tools:call"}, "scopes:"), ({"scopes": {"tools:call": 1}}, "scopes:"),
        ({"scopes": ["tools:call", "SECRET"]}, "scopes[1]:"), ({"scopes": [1]}, "scopes[0]:"),
        ({"scopes": [["tools:call"]]}, "scopes[0]:"), ({"scopes": ["tools:call"] * 33}, "scopes:"),
        ({"dpop_jwk": ABSENT}, "dpop_jwk:"), ({"dpop_jwk": None}, "dpop_jwk:"), ({"dpop_jwk": "SECRET"}, "dpop_jwk:"),
        ({"dpop_jwk": {**AGENT.jwk, "kty": "SECRET"}}, "dpop_jwk.kty:"),
        ({"dpop_jwk": {**AGENT.jwk, "crv": "SECRET"}}, "dpop_jwk.crv:"),
        ({"dpop_jwk": {**AGENT.jwk, "x": "SECRET"}}, "dpop_jwk.x:"),
        ({"dpop_jwk": {**AGENT.jwk, "y": None}}, "dpop_jwk.y:"),
        ({"dpop_jwk": {**AGENT.jwk, "d": "SECRET"}}, "dpop_jwk.d:"),
        ({"dpop_jwk": {**AGENT.jwk, "SECRET": 1}}, "dpop_jwk:"),
        ({"dpop_jwk": {**AGENT.jwk, "y": AGENT.x}}, "dpop_jwk: x and y are not a point"),
        ({"budgets": []}, "budgets:"), ({"budgets": 5}, "budgets:"), ({"budgets": "SECRET"}, "budgets:"),
        ({"budgets": {"max_calls": 0}}, "budgets.max_calls:"), ({"budgets": {"max_calls": -1}}, "budgets.max_calls:"),
        ({"budgets": {"max_calls": MAX_CALLS + 1}}, "budgets.max_calls:"),
        ({"budgets": {"max_calls": True}}, "budgets.max_calls:"),
        ({"budgets": {"max_calls": 5.0}}, "budgets.max_calls:"),
        ({"budgets": {"max_calls": "5"}}, "budgets.max_calls:"),
    ],
)  # fmt: skip
def test_a_bad_request_is_told_which_field_and_never_its_value(changes: dict[str, Any], field: str) -> None:
    body = {name: value for name, value in {**GOOD, **changes}.items() if value is not ABSENT}
    with pytest.raises(GateError) as refused:
        parse_lease_request(body)
    answer = refused.value.body()
    assert (answer["error"], refused.value.status) == ("invalid_request", 400)
    assert answer["message"].startswith(field)
    assert "SECRET" not in answer["message"]


@pytest.mark.parametrize("body", [None, [], "x", 1, True])
def test_a_request_is_an_object(body: object) -> None:
    assert code_of(lambda: parse_lease_request(body)) == "invalid_request"


# ------------------------------------------------------------------ issuing


def test_a_lease_carries_exactly_the_claims_that_are_documented() -> None:
    issued = issue(authority())
    assert jwt.get_unverified_header(issued.lease_jwt) == {"alg": "ES256", "kid": KID, "typ": "gateway-lease+jwt"}
    claims = jwt.decode(issued.lease_jwt, options={"verify_signature": False})
    assert claims == {
        "iss": "action-gateway",
        "aud": "action-gateway",
        "sub": "billing-agent",
        "iat": int(NOW),
        "nbf": int(NOW),
        "exp": int(NOW) + 300,
        "jti": issued.lease_jti,
        "session_id": issued.session_id,
        "scope": ["tools:call"],
        "budgets": {"max_calls": 12},
        "cnf": {"jkt": AGENT.jkt},
        "epoch": 3,
        "owner": "team-billing",
        "identity_method": "peercred",
    }
    assert issued.lease_jti.startswith("lea_")
    assert issued.session_id.startswith("ses_")
    assert issued.expires_at_seconds == int(NOW) + 300
    assert issued.expires_at == iso(int(NOW) + 300) == "2025-11-21T12:05:00.000Z"


def test_a_lease_without_owner_or_budget_has_no_such_claims() -> None:
    claims = jwt.decode(issue(authority(), owner=None, max_calls=None).lease_jwt, options={"verify_signature": False})
    assert "owner" not in claims
    assert "budgets" not in claims


def test_every_lease_is_a_session_of_its_own() -> None:
    by = authority()
    made = [issue(by) for _ in range(3)]
    assert len({one.session_id for one in made}) == len({one.lease_jti for one in made}) == 3


@pytest.mark.parametrize("ttl", [0, -1, 3601])
def test_a_lease_lives_an_hour_at_most(ttl: int) -> None:
    with pytest.raises(ValueError, match="3600"):
        authority(ttl=ttl)
    assert issue(authority(ttl=3600)).expires_at_seconds == int(NOW) + 3600
    assert issue(authority(ttl=1)).expires_at_seconds == int(NOW) + 1


def test_a_stranger_can_verify_a_lease_with_the_published_key() -> None:
    by = authority()
    token = issue(by).lease_jwt
    (published,) = by.jwks()["keys"]
    assert {name: published[name] for name in ("kid", "use", "alg")} == {"kid": KID, "use": "sig", "alg": "ES256"}
    assert "d" not in published
    key = jwt.PyJWKSet.from_dict(by.jwks())[jwt.get_unverified_header(token)["kid"]]
    options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
    assert jwt.decode(token, key, ["ES256"], audience="action-gateway", options=options)["sub"] == "billing-agent"


# ------------------------------------------------------------------ verifying


def test_what_was_issued_is_what_is_verified_the_first_time_and_every_other() -> None:
    by = authority()
    issued = issue(by)
    first = by.verify(issued.lease_jwt)
    assert first == module.Lease(
        session_id=issued.session_id,
        principal="billing-agent",
        owner="team-billing",
        scopes=("tools:call",),
        jti=issued.lease_jti,
        jkt=AGENT.jkt,
        epoch=3,
        exp=issued.expires_at_seconds,
        has_budget=True,
        identity_method="peercred",
    )
    assert by.verify(issued.lease_jwt) is first
    assert not by.verify(issue(by, max_calls=None).lease_jwt).has_budget


def test_a_lease_survives_the_process_that_issued_it() -> None:
    issued = issue(authority())
    assert authority().verify(issued.lease_jwt).session_id == issued.session_id


@pytest.mark.parametrize("is_known", [False, True])
def test_a_lease_ends_at_its_second_known_or_not(is_known: bool) -> None:
    time = Time()
    by = authority(time)
    issued = issue(by)
    if is_known:
        by.verify(issued.lease_jwt)
    time.wall = issued.expires_at_seconds - 0.001
    by.verify(issued.lease_jwt)
    time.wall = issued.expires_at_seconds
    assert code_of(lambda: by.verify(issued.lease_jwt)) == "lease_expired"
    assert code_of(lambda: authority(time).verify(issued.lease_jwt)) == "lease_expired"


def test_a_known_lease_is_not_served_while_the_clock_cannot_be_trusted() -> None:
    wall = [NOW]
    by = LeaseAuthority(SIGNING_KEY, SystemClock(0, wall=lambda: wall[0], boot=lambda: 0.0), 300)
    issued = issue(by)
    by.verify(issued.lease_jwt)
    wall[0] -= 60
    assert code_of(lambda: by.verify(issued.lease_jwt)) == "clock_error"
    assert code_of(lambda: issue(by)) == "clock_error"


def test_a_small_correction_of_the_clock_does_not_refuse_a_new_lease() -> None:
    wall = [NOW]
    clock = SystemClock(0, wall=lambda: wall[0], boot=lambda: 0.0)
    issued = issue(LeaseAuthority(SIGNING_KEY, clock, 300))
    wall[0] -= 4
    LeaseAuthority(SIGNING_KEY, clock, 300).verify(issued.lease_jwt)


def forged(key: Any = SIGNING_KEY, alg: str = "ES256", header: dict[str, Any] | None = None, **changes: Any) -> str:
    issued = issue(authority())
    claims = jwt.decode(issued.lease_jwt, options={"verify_signature": False})
    claims = {name: value for name, value in {**claims, **changes}.items() if value is not ABSENT}
    named = {"typ": "gateway-lease+jwt", "kid": KID, **(header or {})}
    return jwt.encode(claims, key, alg, headers={name: value for name, value in named.items() if value is not ABSENT})


STRANGER = ec.generate_private_key(ec.SECP256R1())
FORGED: dict[str, Callable[[], str]] = {
    "empty": lambda: "",
    "not a token": lambda: "lease",
    "two dots": lambda: "..",
    "beyond ASCII": lambda: "é" + forged()[1:],
    "too long": lambda: forged() + "A" * 9000,
    "ours but too long": lambda: forged(owner="o" * 6000),
    "cut": lambda: forged()[:-1],
    "padded": lambda: forged() + "==",
    "white space": lambda: forged() + " ",
    "signed by a stranger": lambda: forged(STRANGER),
    "signed by the agent": lambda: forged(AGENT.private, header={"jwk": AGENT.jwk}),
    "alg none": lambda: forged(None, "none"),
    "HS256 with the public key": lambda: forged(KID.encode(), "HS256"),
    "claims changed after signing": lambda: tampered("billing-agent", "root"),
    "another kid": lambda: forged(header={"kid": "other"}),
    "no kid": lambda: forged(header={"kid": ABSENT}),
    "another typ": lambda: forged(header={"typ": "JWT"}),
    "a grant": lambda: forged(header={"typ": "gateway-grant+jwt"}),
    "crit": lambda: forged(header={"crit": ["x"]}),
    "another issuer": lambda: forged(iss="someone"),
    "another audience": lambda: forged(aud="someone"),
    "no audience": lambda: forged(aud=ABSENT),
    "no expiry": lambda: forged(exp=ABSENT),
    "expiry as text": lambda: forged(exp="4102444800"),
    "expiry never": lambda: forged(exp=None),
    "no binding": lambda: forged(cnf=ABSENT),
    "binding to nothing": lambda: forged(cnf={}),
    "no epoch": lambda: forged(epoch=ABSENT),
    "epoch as text": lambda: forged(epoch="3"),
    "scope as text": lambda: forged(scope="tools:call"),
    "no session": lambda: forged(session_id=ABSENT),
    "not valid yet": lambda: forged(nbf=int(NOW) + 30),
    "an operator's key": lambda: "key-dev-00112233445566778899aabbccddeeff",
}


def tampered(old: str, new: str) -> str:
    header, payload, signature = forged().split(".")
    claims = base64.urlsafe_b64decode(payload + "==").replace(old.encode(), new.encode())
    return ".".join([header, b64(claims), signature])


@pytest.mark.parametrize("name", FORGED)
def test_whatever_is_not_our_lease_is_invalid(name: str) -> None:
    by = authority()
    by.verify(issue(by).lease_jwt)
    assert code_of(lambda: by.verify(FORGED[name]())) == "invalid_lease"


def test_the_forgeries_start_from_a_lease_that_holds() -> None:
    assert authority().verify(forged()).principal == "billing-agent"


def test_an_old_token_that_never_was_ours_is_invalid_rather_than_expired() -> None:
    assert code_of(lambda: authority().verify(forged(STRANGER, exp=1))) == "invalid_lease"
    assert code_of(lambda: authority().verify(forged(exp=1))) == "lease_expired"


def test_known_leases_are_bounded_and_the_one_longest_unused_leaves_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_LEASES", 2)
    by = authority()
    one, two, three = (issue(by).lease_jwt for _ in range(3))
    first, second = by.verify(one), by.verify(two)
    assert by.verify(one) is first
    by.verify(three)
    assert by.verify(one) is first
    assert by.verify(two) is not second
    assert by.verify(two) == second


SAMPLE = forged()


@given(st.integers(0, len(SAMPLE) - 1), st.sampled_from("Aa0-_.=+/ \né") | st.characters(), st.integers(0, 1))
@settings(max_examples=200, deadline=None)
def test_a_bent_lease_is_refused_or_is_the_same_lease(place: int, character: str, cut: int) -> None:
    text = SAMPLE[:place] + character + SAMPLE[place + cut :]
    try:
        found = authority().verify(text)
    except GateError as refused:
        if refused.code != "invalid_lease":
            raise
    else:
        assert (text, found.principal) == (SAMPLE, "billing-agent")
