"""Leases: what is asked for, what is issued, and what is accepted back."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from frontend.auth import lease as module
from frontend.auth.keys import parse_jwk, public_key_of
from frontend.auth.keysets import P256_SET, KeySetFile, ListedKey, public_jwk, write_set
from frontend.auth.lease import IssuedLease, LeaseAuthority
from frontend.auth.lease_keys import LEASE_KEY_KEPT_SECONDS, LeaseKeys
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
@settings(max_examples=100, deadline=None)
def test_a_bent_lease_is_refused_or_is_the_same_lease(place: int, character: str, cut: int) -> None:
    text = SAMPLE[:place] + character + SAMPLE[place + cut :]
    try:
        found = authority().verify(text)
    except GateError as refused:
        if refused.code != "invalid_lease":
            raise
    else:
        assert (text, found.principal) == (SAMPLE, "billing-agent")


# ------------------------------------------------------------------ rotations

OTHER_KEY = ec.generate_private_key(ec.SECP256R1())


def both(retired: float) -> LeaseKeys:
    """OTHER_KEY signs; SIGNING_KEY was followed by it at `retired`."""
    return LeaseKeys(
        OTHER_KEY,
        (ListedKey(public_jwk(SIGNING_KEY), iso(NOW), iso(retired)), ListedKey(public_jwk(OTHER_KEY), iso(retired))),
    )


def test_a_lease_of_the_key_before_is_accepted_until_it_expires() -> None:
    time = Time()
    by = authority(time)
    before = issue(by)
    by.verify(before.lease_jwt)
    by.use(both(time.wall))
    after = issue(by)
    kids = [jwt.get_unverified_header(one.lease_jwt)["kid"] for one in (before, after)]
    assert kids == [KID, public_key_of(OTHER_KEY).jkt]
    assert [jwk["kid"] for jwk in by.jwks()["keys"]] == kids[::-1]
    time.wall += 299
    assert by.verify(before.lease_jwt).session_id == before.session_id
    assert by.verify(after.lease_jwt).session_id == after.session_id
    time.wall += 1
    assert code_of(lambda: by.verify(before.lease_jwt)) == "lease_expired"


def test_a_key_of_which_no_lease_can_be_alive_verifies_nothing_and_is_not_shown() -> None:
    time = Time()
    by = authority(time)
    by.use(both(NOW))
    forged = LeaseAuthority(SIGNING_KEY, time.clock(), 300)
    time.wall = NOW + LEASE_KEY_KEPT_SECONDS - 1
    by.verify(issue(forged).lease_jwt)
    assert len(by.jwks()["keys"]) == 2
    time.wall += 2
    assert code_of(lambda: by.verify(issue(forged).lease_jwt)) == "invalid_lease"
    assert [jwk["kid"] for jwk in by.jwks()["keys"]] == [public_key_of(OTHER_KEY).jkt]


def test_a_key_that_was_forgotten_takes_its_leases_with_it_even_known_ones() -> None:
    by = authority()
    token = issue(by).lease_jwt
    by.verify(token)
    by.use(LeaseKeys.alone(OTHER_KEY))
    assert code_of(lambda: by.verify(token)) == "invalid_lease"


def test_another_front_s_lease_is_accepted_before_this_front_has_followed_the_rotation(tmp_path: Path) -> None:
    path = tmp_path / "set"
    write_set(path, (ListedKey(public_jwk(SIGNING_KEY), iso(NOW)),))
    here = LeaseAuthority(SIGNING_KEY, Time().clock(), 300, KeySetFile(path, P256_SET))
    token = issue(LeaseAuthority(OTHER_KEY, Time().clock(), 300)).lease_jwt
    assert code_of(lambda: here.verify(token)) == "invalid_lease"
    write_set(path, (ListedKey(public_jwk(SIGNING_KEY), iso(NOW)), ListedKey(public_jwk(OTHER_KEY), iso(NOW))))
    assert here.verify(token).principal == "billing-agent"
    assert here.kid == KID  # it goes on to sign with its own
    assert here.verify(issue(here).lease_jwt)


def test_a_lease_that_outlives_every_lease_is_refused() -> None:
    """Nobody issues one; a key that verifies for an hour after its time must not let through what lives longer."""
    long = jwt.decode(issue(authority(ttl=3600)).lease_jwt, options={"verify_signature": False}) | {
        "exp": int(NOW) + 3601
    }
    token = jwt.encode(long, SIGNING_KEY, "ES256", headers={"typ": "gateway-lease+jwt", "kid": KID})
    assert code_of(lambda: authority().verify(token)) == "invalid_lease"
