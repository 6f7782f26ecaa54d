"""The grant: the table of what is not one."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipc.plan import Limits
from tests.support.worker_plans import Signer, b64, digest_of, make_plan
from workers.grant import GrantRefused, GrantVerifier, check_known_answer

SIGNER = Signer()
PLAN = make_plan()


def verifier(signer: Signer = SIGNER) -> GrantVerifier:
    return GrantVerifier(signer.jwks)


def refusal(grant: str, plan: Any = PLAN) -> str:
    with pytest.raises(GrantRefused) as caught:
        verifier().check(grant, plan)
    return str(caught.value)


def test_a_grant_for_the_plan_is_taken() -> None:
    found = verifier().check(SIGNER.grant(PLAN), PLAN)
    assert (found.grant_id, found.is_approved) == ("grant_1", False)


def test_a_grant_tells_whether_a_person_approved() -> None:
    approval = {"approval_id": "apr_1", "approved_by": "op", "operator_jkt": "j", "operator_proof_jti": "p"}
    assert verifier().check(SIGNER.grant(PLAN, approval=approval), PLAN).is_approved
    assert not verifier().check(SIGNER.grant(PLAN, approval=None), PLAN).is_approved


@pytest.mark.parametrize(
    ("claims", "word"),
    [
        ({"plan_hash": digest_of(b"")}, "another plan"),
        ({"module_digest": digest_of(b"")}, "another module"),
        ({"trace_id": "trc_2"}, "another call"),
        ({"epoch": 2}, "another epoch"),
        ({"exp": int(time.time()) - 1}, "expired"),
        ({"iat": int(time.time()) + 3600}, "future"),
        ({"exp": "soon"}, "claims"),
        ({"plan_hash": None}, "claims"),
    ],
)
def test_a_grant_for_something_else_is_refused(claims: dict[str, Any], word: str) -> None:
    assert word in refusal(SIGNER.grant(PLAN, **claims))


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "HS256"},
        {"typ": "JWT"},
        {"typ": "dpop+jwt"},
        {"kid": "k2"},
        {"crit": ["x"]},
        {"jwk": {}},
    ],
)
def test_another_header_is_refused(header: dict[str, Any]) -> None:
    assert "header" in refusal(SIGNER.grant(PLAN, header=header))


def test_a_signature_by_another_key_of_the_same_name_is_refused() -> None:
    assert "signature" in refusal(Signer().grant(PLAN))


@pytest.mark.parametrize("index", [0, 1, 2])
def test_any_part_of_another_grant_breaks_it(index: int) -> None:
    ours, other = SIGNER.grant(PLAN).split("."), SIGNER.grant(make_plan(request='{"a":1}'), grant_id="g2").split(".")
    mixed = [*ours]
    mixed[index] = other[index]
    if mixed != ours:
        refusal(".".join(mixed))


@pytest.mark.parametrize(
    "grant", ["", "a", "a.b", "a.b.c", "a.b.c.d", "..", "e30.e30.", "x" * 9000, "=.=.=", "é.é.é", "e30.e30.AAAA"]
)
def test_what_is_no_grant_is_refused(grant: str) -> None:
    refusal(grant)


def test_an_unsigned_grant_is_refused() -> None:
    head, claims, _ = SIGNER.grant(PLAN).split(".")
    refusal(f"{head}.{claims}.")
    refusal(f"{b64(json.dumps({'alg': 'none', 'typ': 'gateway-grant+jwt', 'kid': 'k1'}).encode())}.{claims}.")


@pytest.mark.parametrize(
    "changes", [{"request": '{"a":2}'}, {"limits": Limits(fuel=1)}, {"principal": "q"}, {"max_response_bytes": 1}]
)
def test_a_plan_with_any_other_field_is_another_plan(changes: dict[str, Any]) -> None:
    refusal(SIGNER.grant(PLAN), make_plan(**changes))


@pytest.mark.parametrize(
    "jwks",
    ["", "{}", '{"keys":[]}', '{"keys":[{"kty":"RSA","kid":"k","x":"","y":""}]}', "[]",
     '{"keys":[{"kty":"EC","crv":"P-256","kid":"k","x":"AAAA","y":"AAAA"}]}'],
)  # fmt: skip
def test_keys_that_can_not_be_used_are_refused(jwks: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        GrantVerifier(jwks)


def test_old_and_new_keys_of_a_rotation_both_hold() -> None:
    other = Signer("k9")
    both = json.dumps({"keys": json.loads(SIGNER.jwks)["keys"] + json.loads(other.jwks)["keys"]})
    found = GrantVerifier(both)
    assert found.check(SIGNER.grant(PLAN), PLAN) == found.check(other.grant(PLAN), PLAN)


def test_the_librarys_known_answer_holds() -> None:
    check_known_answer()


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_text_raises_anything_but_a_refusal(grant: str) -> None:
    with pytest.raises(GrantRefused):
        verifier().check(grant, PLAN)


@given(st.integers(0, 400), st.characters())
@settings(max_examples=100, deadline=None)
def test_no_grant_with_a_changed_character_is_taken_for_another_plan(place: int, character: str) -> None:
    whole = SIGNER.grant(PLAN)
    place %= len(whole)
    changed = whole[:place] + character + whole[place + 1 :]
    try:
        verifier().check(changed, PLAN)
    except GrantRefused:
        return
    # The last character of a part holds bits that decode to nothing: such a change is none.
    assert changed == whole or place in (len(whole) - 1, *(at - 1 for at, sign in enumerate(whole) if sign == "."))
