"""Finding the token and the proof among the headers."""

import pytest

from frontend.auth.authorization import parse_authorization
from frontend.errors import GateError

PROOF = ("dpop", "a.b.c")


@pytest.mark.parametrize("value", ["DPoP tok.en", "dpop tok.en", "DPOP   tok.en ", "DPoP tok.en "])
def test_token_and_proof_are_found(value: str) -> None:
    headers = [("host", "evil.test"), ("authorization", value), ("accept", "*/*"), PROOF]
    assert parse_authorization(headers) == ("tok.en", "a.b.c")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ([], "missing_auth_header"),
        ([PROOF], "missing_auth_header"),
        ([("authorization", "DPoP t")], "missing_auth_header"),
        ([("authorization", ""), PROOF], "missing_auth_header"),
        ([("authorization", "DPoP"), PROOF], "missing_auth_header"),
        ([("authorization", "DPoP   "), PROOF], "missing_auth_header"),
        ([("authorization", "Bearer t"), PROOF], "missing_auth_header"),
        ([("authorization", "DPoPt"), PROOF], "missing_auth_header"),
        ([("authorization", "DPoP\tt"), PROOF], "missing_auth_header"),
        ([("authorization", "t"), PROOF], "missing_auth_header"),
        ([("authorization", "DPoP t"), ("authorization", "DPoP t"), PROOF], "missing_auth_header"),
        ([("authorization", "Bearer t"), ("authorization", "DPoP t"), PROOF], "missing_auth_header"),
        ([("authorization", "DPoP t"), PROOF, PROOF], "invalid_dpop"),
        ([("authorization", "DPoP t"), PROOF, ("dpop", "")], "invalid_dpop"),
    ],
)
def test_anything_but_one_of_each_is_refused(headers: list[tuple[str, str]], code: str) -> None:
    with pytest.raises(GateError) as refused:
        parse_authorization(headers)
    assert refused.value.code == code
    assert ("WWW-Authenticate", "DPoP") in refused.value.headers()
