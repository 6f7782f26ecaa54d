"""Leases as they are shown: only what the notary signed, with a key that is in force, and until it ends."""

import base64
from collections.abc import Callable
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from frontend.auth.lease import CACHED_LEASES, Lease, LeaseVerifier
from frontend.clock import STEP_TOLERANCE_SECONDS, FrontClock
from frontend.errors import GateError
from frontend.notary.in_force import NOTHING
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.leases import LEASE_KEY_KEPT_SECONDS
from ipc.messages.notary_frames import FrontFacts
from ipc.process.clock import iso
from notary.signing.keys import HeldKey
from notary.signing.keysets import ListedKey, public_jwk
from notary.signing.leases import lease_keys
from tests.notary.samples import make_issue
from tests.support.proofs import ABSENT, Key, b64
from tests.support.signed_leases import SignedLease, signed_lease

NOW = 1_763_726_400.75

LeaseKeys = HeldKey[ec.EllipticCurvePrivateKey]


class Time:
    def __init__(self) -> None:
        self.wall = NOW

    def clock(self) -> FrontClock:
        return FrontClock(0, wall=lambda: self.wall, boot=lambda: self.wall - NOW)


SIGNING_KEY = ec.generate_private_key(ec.SECP256R1())
KID = public_jwk(SIGNING_KEY)["kid"]
AGENT = Key()


def held(key: ec.EllipticCurvePrivateKey, *listed: ListedKey) -> LeaseKeys:
    jwk = public_jwk(key)
    return HeldKey(key, jwk["kid"], listed or (ListedKey(jwk, iso(NOW)),))


def in_force(keys: LeaseKeys) -> FrontFacts:
    """The keys as the notary announces them."""
    return msgspec.structs.replace(NOTHING, lease_keys=lease_keys(keys))


def verifier(time: Time | None = None, keys: LeaseKeys | None = None, max_known: int = CACHED_LEASES) -> LeaseVerifier:
    made = LeaseVerifier((time or Time()).clock(), lambda: None, max_known=max_known)
    made.use(in_force(keys or held(SIGNING_KEY)))
    return made


def issue(
    key: ec.EllipticCurvePrivateKey = SIGNING_KEY, *, at: float = NOW, ttl: int = 300, **changes: Any
) -> SignedLease:
    asked = make_issue(**{
        "principal": "billing-agent", "owner": "team-billing", "max_calls": 12, "jkt": AGENT.jkt,
        "identity_method": "peercred",
    } | changes)  # fmt: skip
    return signed_lease(held(key), asked, epoch=3, now=at, ttl=ttl)


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(GateError) as refused:
        call()
    return refused.value.code


# ------------------------------------------------------------------ verifying


def test_an_issued_lease_verifies_the_same_each_time() -> None:
    by = verifier()
    issued = issue()
    first = by.verify(issued.token)
    assert first == Lease(
        session_id=issued.session_id, principal="billing-agent", owner="team-billing", scopes=("tools:call",),
        jti=issued.lease_jti, jkt=AGENT.jkt, epoch=3, exp=issued.exp, has_budget=True,
        origin=IdentityOrigin("peercred"),
    )  # fmt: skip
    assert by.verify(issued.token) is first
    assert not by.verify(issue(max_calls=None).token).has_budget


@pytest.mark.parametrize("is_known", [False, True])
def test_a_lease_ends_at_its_second_known_or_not(is_known: bool) -> None:
    time = Time()
    by = verifier(time)
    issued = issue()
    if is_known:
        by.verify(issued.token)
    time.wall = issued.exp - 0.001
    by.verify(issued.token)
    time.wall = issued.exp
    assert code_of(lambda: by.verify(issued.token)) == "lease_expired"
    assert code_of(lambda: verifier(time).verify(issued.token)) == "lease_expired"


def stepping(wall: list[float]) -> LeaseVerifier:
    by = LeaseVerifier(FrontClock(0, wall=lambda: wall[0], boot=lambda: 0.0), lambda: None)
    by.use(in_force(held(SIGNING_KEY)))
    return by


def test_a_known_lease_is_not_served_while_the_clock_cannot_be_trusted() -> None:
    wall = [NOW]
    by, issued = stepping(wall), issue()
    by.verify(issued.token)
    wall[0] -= 60
    assert code_of(lambda: by.verify(issued.token)) == "clock_error"


def test_a_small_correction_of_the_clock_does_not_refuse_a_new_lease() -> None:
    wall = [NOW]
    by, issued = stepping(wall), issue()
    wall[0] -= 4
    by.verify(issued.token)


def test_a_lease_holds_from_five_seconds_before_its_time() -> None:
    time, issued = Time(), issue(at=NOW - 0.75)
    time.wall = NOW - 0.75 - STEP_TOLERANCE_SECONDS
    verifier(time).verify(issued.token)
    time.wall -= 0.25
    assert code_of(lambda: verifier(time).verify(issued.token)) == "invalid_lease"


def test_the_times_of_a_lease_are_judged_by_the_gateway_s_clock_and_by_no_other() -> None:
    time = Time()
    time.wall = NOW + 50 * 365 * 86_400  # the machine's own has not come that far
    by, issued = verifier(time), issue(at=time.wall)
    assert by.verify(issued.token).exp == issued.exp
    time.wall = issued.exp
    assert code_of(lambda: by.verify(issued.token)) == "lease_expired"


def test_before_the_notary_has_said_anything_every_lease_is_invalid() -> None:
    by = LeaseVerifier(Time().clock(), lambda: None)
    assert code_of(lambda: by.verify(issue().token)) == "invalid_lease"


def forged(key: Any = SIGNING_KEY, alg: str = "ES256", header: dict[str, Any] | None = None, **changes: Any) -> str:
    claims = jwt.decode(issue().token, options={"verify_signature": False})
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
def test_a_token_that_is_no_lease_of_this_gateway_is_invalid(name: str) -> None:
    by = verifier()
    by.verify(issue().token)
    assert code_of(lambda: by.verify(FORGED[name]())) == "invalid_lease"


def test_an_old_token_that_never_was_ours_is_invalid_rather_than_expired() -> None:
    assert code_of(lambda: verifier().verify(forged(STRANGER, exp=1))) == "invalid_lease"
    assert code_of(lambda: verifier().verify(forged(exp=1))) == "lease_expired"


def test_known_leases_are_bounded_and_the_one_longest_unused_leaves_first() -> None:
    by = verifier(max_known=2)
    one, two, three = (issue().token for _ in range(3))
    first, second = by.verify(one), by.verify(two)
    assert by.verify(one) is first
    by.verify(three)
    assert by.verify(one) is first
    assert by.verify(two) is not second
    assert by.verify(two) == second


SAMPLE = forged()


@given(st.integers(0, len(SAMPLE) - 1), st.sampled_from("Aa0-_.=+/ \né") | st.characters(), st.integers(0, 1))
def test_a_bent_lease_is_refused_or_is_the_same_lease(place: int, character: str, cut: int) -> None:
    text = SAMPLE[:place] + character + SAMPLE[place + cut :]
    try:
        lease = verifier().verify(text)
    except GateError as refused:
        if refused.code != "invalid_lease":
            raise
    else:
        assert (text, lease.principal) == (SAMPLE, "billing-agent")


# ------------------------------------------------------------------ rotations

OTHER_KEY = ec.generate_private_key(ec.SECP256R1())


def both(retired: float) -> LeaseKeys:
    """OTHER_KEY signs; SIGNING_KEY was followed by it at `retired`."""
    before = ListedKey(public_jwk(SIGNING_KEY), iso(NOW), iso(retired))
    return held(OTHER_KEY, before, ListedKey(public_jwk(OTHER_KEY), iso(retired)))


def test_a_lease_of_the_key_before_is_accepted_until_it_expires() -> None:
    time = Time()
    by = verifier(time)
    before, after = issue(), issue(OTHER_KEY)
    by.verify(before.token)
    by.use(in_force(both(time.wall)))
    time.wall += 299
    assert by.verify(before.token).session_id == before.session_id
    assert by.verify(after.token).session_id == after.session_id
    time.wall += 1
    assert code_of(lambda: by.verify(before.token)) == "lease_expired"


def test_a_key_of_which_no_lease_can_be_alive_verifies_nothing() -> None:
    time = Time()
    by = verifier(time, both(NOW))
    time.wall = NOW + LEASE_KEY_KEPT_SECONDS - 0.25
    by.verify(issue(at=time.wall).token)
    time.wall += 0.25
    assert code_of(lambda: by.verify(issue(at=time.wall).token)) == "invalid_lease"


def test_a_key_that_was_forgotten_takes_its_leases_with_it_even_known_ones() -> None:
    by = verifier()
    token = issue().token
    by.verify(token)
    by.use(in_force(held(OTHER_KEY)))
    assert code_of(lambda: by.verify(token)) == "invalid_lease"


def test_a_lease_of_a_key_whose_announcement_has_just_arrived_is_accepted() -> None:
    """The notary announces a key before anything that it signs; a front may have a lease in hand before it listens."""
    arrived = in_force(both(NOW))
    by = LeaseVerifier(Time().clock(), lambda: by.use(arrived))
    by.use(in_force(held(SIGNING_KEY)))
    assert by.verify(issue(OTHER_KEY).token).principal == "billing-agent"
    assert by.verify(issue().token).principal == "billing-agent"


def test_a_repeated_message_of_the_notary_forgets_no_known_lease() -> None:
    by, issued = verifier(), issue()
    first = by.verify(issued.token)
    by.use(in_force(held(SIGNING_KEY)))
    assert by.verify(issued.token) is first


def test_a_lease_that_outlives_every_lease_is_refused() -> None:
    """No notary issues one; a key that verifies for an hour after its time must not accept a longer lease."""
    assert verifier().verify(issue(ttl=3600).token).exp == int(NOW) + 3600
    long = jwt.decode(issue(ttl=3600).token, options={"verify_signature": False}) | {"exp": int(NOW) + 3601}
    token = jwt.encode(long, SIGNING_KEY, "ES256", headers={"typ": "gateway-lease+jwt", "kid": KID})
    assert code_of(lambda: verifier().verify(token)) == "invalid_lease"
