"""Operators are found by their key and by nothing else."""

import hashlib

import pytest

from frontend.auth.operators import Operator, Operators
from frontend.errors import GateError
from ipc.settings import OperatorSettings

ALICE = "key-alice-00112233445566778899aabbccddeeff"
BOB = "key-bob-ffeeddccbbaa99887766554433221100"


def operators() -> Operators:
    return Operators(
        (
            OperatorSettings(name="alice", api_key=ALICE, dpop_jkt="J" * 43),
            OperatorSettings(name="bob", api_key_sha256=hashlib.sha256(BOB.encode()).hexdigest()),
        )
    )


def test_a_key_finds_its_operator_whether_it_was_configured_in_clear_or_hashed() -> None:
    assert operators().authenticate(ALICE) == Operator("alice", "J" * 43)
    assert operators().authenticate(BOB) == Operator("bob", None)


def test_a_key_may_have_1_to_512_characters() -> None:
    for key in ("k", "k" * 512):
        assert Operators((OperatorSettings(name="a", api_key=key),)).authenticate(key).name == "a"
    with pytest.raises(ValueError, match="512"):
        Operators((OperatorSettings(name="a", api_key=key + "k"),))


@pytest.mark.parametrize(
    "key",
    ["", "key-alice-", ALICE[:-1], ALICE + "0", ALICE.upper(), " " + ALICE, "é", "\ud800", "k" * 100_000,
     hashlib.sha256(BOB.encode()).hexdigest(), "eyJ.eyJ.sig"],
    ids=lambda key: ascii(key[:12]),
)  # fmt: skip
def test_any_other_key_is_refused(key: str) -> None:
    with pytest.raises(GateError) as refused:
        operators().authenticate(key)
    assert refused.value.code == "invalid_operator_token"
    assert refused.value.status == 401
    with pytest.raises(GateError):
        Operators(()).authenticate(key)


@pytest.mark.parametrize(
    "settings",
    [
        (OperatorSettings(name="a"),),
        (OperatorSettings(name="a", api_key="k", api_key_sha256="0" * 64),),
        (OperatorSettings(name="a", api_key=""),),
        (OperatorSettings(name="a", api_key_sha256="0" * 63),),
        (OperatorSettings(name="a", api_key_sha256="A" * 64),),
        (OperatorSettings(name="a", api_key="k"), OperatorSettings(name="a", api_key="l")),
        (OperatorSettings(name="a", api_key="k"), OperatorSettings(name="b", api_key="k")),
    ],
)
def test_unusable_and_ambiguous_credentials_are_refused_at_start_without_repeating_them(
    settings: tuple[OperatorSettings, ...],
) -> None:
    with pytest.raises(ValueError, match=r"^operator [ab]: "):
        Operators(settings)
