"""The principal and the scopes of a lease."""

from dataclasses import dataclass

import msgspec
import pytest

from frontend.auth.identity import Identity, identify, intersect_scopes
from frontend.contract.leases import Scope
from frontend.errors import GateError
from ipc.settings import IdentitySettings, PrincipalMapping


@dataclass(frozen=True)
class User:
    uid: int


MAPPED = IdentitySettings(
    principals={
        "1000": PrincipalMapping(principal="billing-agent", scopes=("tools:call", "pay:write"), owner="team-billing")
    }
)


def test_a_mapped_user_is_its_principal() -> None:
    expected = Identity("billing-agent", ("tools:call", "pay:write"), "team-billing", "peercred")
    assert identify(MAPPED, User(1000)) == expected


def test_an_unmapped_user_has_no_principal_unless_the_configuration_allows_it() -> None:
    for uid in (0, 1001, 65534):
        with pytest.raises(GateError) as refused:
            identify(MAPPED, User(uid))
        assert (refused.value.code, refused.value.status) == ("identity_forbidden", 403)
        assert str(uid) not in str(refused.value.body())
    identity = identify(IdentitySettings(allow_unmapped=True), User(7))
    assert identity == Identity("uid:7", ("tools:call",), None, "peercred")


def test_a_connection_without_peer_credentials_can_not_be_identified() -> None:
    for settings in (MAPPED, IdentitySettings(allow_unmapped=True)):
        with pytest.raises(GateError) as refused:
            identify(settings, None)
        assert (refused.value.code, refused.value.status) == ("identity_provider_unavailable", 503)
        assert "does not show its user" in (refused.value.cause or "")


def test_without_a_provider_everybody_is_the_dev_principal() -> None:
    for peer in (None, User(0)):
        assert identify(IdentitySettings(provider="none"), peer) == Identity("dev:anonymous", None, None, "none")


def test_a_provider_that_does_not_exist_fails_closed() -> None:
    with pytest.raises(GateError) as refused:
        identify(IdentitySettings(provider="ldap", allow_unmapped=True), User(1000))
    assert (refused.value.code, refused.value.status) == ("identity_provider_unavailable", 503)


@pytest.mark.parametrize("text", ["tools:call", "a:bc", "pay:write:eu-1", "x_y:z", ":abc", "a" * 63 + ":"])
def test_scopes_are_short_lower_case_words_with_a_colon(text: str) -> None:
    assert msgspec.convert(text, Scope) == text


@pytest.mark.parametrize(
    "text",
    ["", "tools", "a:b", "Tools:call", "tools:call ", "tools call:x", "a" * 64 + ":", "tools:call\n", "é:abc", None, 1],
)
def test_anything_else_is_no_scope(text: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, Scope)


def test_a_lease_gets_what_was_asked_for_and_is_allowed() -> None:
    asked = ("pay:write", "tools:call", "pay:write", "admin:all")
    assert intersect_scopes(asked, ("tools:call", "pay:write")) == ("pay:write", "tools:call")
    assert intersect_scopes(asked, None) == ("pay:write", "tools:call", "admin:all")
    for allowed in ((), ("other:scope",)):
        with pytest.raises(GateError) as refused:
            intersect_scopes(asked, allowed)
        assert (refused.value.code, refused.value.status) == ("scope_not_permitted", 403)
