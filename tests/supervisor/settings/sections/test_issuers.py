"""`[[identity.issuers]]` and `identity.edge_uids` in the configuration."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.configuration.issuers import IssuerSettings, SubjectMapping
from supervisor.settings.config import Loaded
from supervisor.settings.sections.issuers import MAX_ISSUERS
from tests.supervisor.settings.parsed import checked, with_rows

RSA = {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "k"}
EDGE = "[identity]\nedge_uids = [991]\n"
TABLE = """name = "corp"
issuer = "https://login.example"
audience = "https://gate.example"
jwks_file = "corp.jwks"
algorithms = ["RS256"]
"""
BY_URL = TABLE.replace('jwks_file = "corp.jwks"', 'jwks_url = "https://login.example/keys"')
OTHER = TABLE.replace("corp", "other").replace("login", "other")
MAPPED = 'principals = {"spiffe://corp/a" = {principal = "a"}}\n'


Load = Callable[..., Loaded]


@pytest.fixture
def loaded(tmp_path: Path) -> Load:
    """Load a configuration with these tables of issuers, whose files of keys are there."""
    for name in ("corp", "other"):
        (tmp_path / f"{name}.jwks").write_text(json.dumps({"keys": [RSA]}))

    def load(*tables: str, head: str = EDGE) -> Loaded:
        return checked(with_rows("identity.issuers", tables, head), tmp_path)

    return load


def test_an_issuer_has_the_documented_defaults(loaded: Load, tmp_path: Path) -> None:
    settings = loaded(TABLE).settings
    assert settings is not None
    assert settings.identity.edge_uids == (991,)
    assert settings.identity.issuers == (
        IssuerSettings(
            "corp", "https://login.example", ("https://gate.example",), ("RS256",), str(tmp_path / "corp.jwks"), None,
            "{sub}", ("tools:call",), None, {}, {},
        ),
    )  # fmt: skip


def test_subjects_have_mappings_of_their_own_and_claims_may_be_required(loaded: Load) -> None:
    settings = loaded(TABLE + MAPPED + 'require = {email_verified = true, groups = "agents"}\n').settings
    assert settings is not None
    (one,) = settings.identity.issuers
    assert one.principals == {"spiffe://corp/a": SubjectMapping("a")}
    assert one.require == {"email_verified": True, "groups": "agents"}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        *((["\n".join(line for line in TABLE.splitlines() if not line.startswith(name)) + "\n"],
           f"identity.issuers[0].{name}: is missing")
          for name in ("name", "issuer", "audience", "jwks_file", "algorithms")),
        ([TABLE + 'jwks_url = "https://login.example/keys"\n'], "stands beside jwks_url"),
        ([BY_URL.replace("https://login.example/", "http://login.example/")], "is not https"),
        ([BY_URL.replace("login.example/", "user@login.example/")], "must hold"),
        ([BY_URL.replace("login.example/keys", "10.0.0.1/keys")], "must name its host by a name"),
        ([TABLE.replace("RS256", "none")], "must be"), ([TABLE.replace("RS256", "HS256")], "must be"),
        ([TABLE + 'principal = "corp"\n'], "one claim in braces"),
        ([TABLE + 'principal = "{a}:{sub}"\n'], "one claim in braces"),
        ([TABLE + 'principal = "{sub}/x"\n'], "one claim in braces"),
        ([TABLE + "require = {level = 3}\n"], "must be a text in quotes"),
        ([TABLE + 'principals = {"a" = {scopes = ["a:b"]}}\n'], "principals.a.principal: is missing"),
        ([TABLE + MAPPED + 'principal = "x:{sub}"\n'], "stands beside principals"),
        ([TABLE, OTHER], "could make the same principals"),
        ([TABLE + 'principal = "a:{sub}"\n', OTHER + 'principal = "a:b:{sub}"\n'], "could make the same principals"),
        ([TABLE, OTHER.replace("other.example", "login.example")], "is there twice"),
        ([TABLE] * (MAX_ISSUERS + 1), f"{MAX_ISSUERS} are the most"),
    ],
)  # fmt: skip
def test_a_row_that_will_not_do_is_named(tables: list[str], said: str, loaded: Load) -> None:
    found = loaded(*tables)
    assert found.settings is None
    assert any(said in problem.text for problem in found.problems), [one.text for one in found.problems]


def replace_with_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (lambda file: file.unlink(), "can't be read: No such file or directory"),
        (lambda file: (file.unlink(), file.mkdir()), "can't be read: Is a directory"),
        (replace_with_pipe, "is no file"),
        (lambda file: file.write_text(""), "is no JWK set"),
        (lambda file: file.write_text(json.dumps([RSA])), "is no JWK set"),
        (lambda file: file.write_text(json.dumps({"keys": [RSA | {"d": "AQAB"}]})), "holds a private key or a secret"),
        (lambda file: file.write_text(json.dumps({"keys": [RSA] * 65})), "has more than 64 keys"),
        (lambda file: file.write_text(" " * 300_000), "has more than 262144 bytes"),
        (lambda file: file.write_text(json.dumps({"keys": []})), "has no key for signatures in RS256"),
        (lambda file: file.write_text(json.dumps({"keys": [RSA | {"use": "enc"}]})), "has no key for signatures"),
        (lambda file: file.write_text(json.dumps({"keys": [RSA | {"alg": "PS256"}]})), "has no key for signatures"),
        (lambda file: file.write_text(json.dumps({"keys": [{"kty": "EC"}]})), "has no key for signatures in RS256"),
    ],
)
def test_a_file_of_keys_that_will_not_do_is_named_with_its_row(
    put: Callable[[Path], object], said: str, loaded: Load, tmp_path: Path
) -> None:
    put(tmp_path / "other.jwks")
    found = loaded(TABLE + 'principal = "a:{sub}"\n', OTHER + 'principal = "b:{sub}"\n')
    (problem,) = found.problems
    assert problem.text.startswith(f"identity.issuers[1].jwks_file: {tmp_path / 'other.jwks'} {said}"), problem.text
    assert problem.mend
    assert found.settings is None


def test_an_address_of_keys_is_https_or_in_dev_a_server_that_the_configuration_names(loaded: Load) -> None:
    settings = loaded(BY_URL).settings
    assert settings is not None
    (one,) = settings.identity.issuers
    assert (one.jwks_file, one.jwks_url) == (None, "https://login.example/keys")
    dev = 'dev_mode = true\n[egress.unsafe_resolve]\n"login.example" = "127.0.0.1:9"\n' + EDGE
    found = loaded(BY_URL.replace("https://login.example/", "http://login.example/"), head=dev)
    assert not any("jwks_url" in one.text for one in found.problems), found.problems


@pytest.mark.parametrize("more", ['principal = "b:{sub}"\n', MAPPED])
def test_two_issuers_whose_principals_differ_stand_together(more: str, loaded: Load) -> None:
    assert loaded(TABLE + 'principal = "a:{sub}"\n', OTHER + more).settings is not None


def test_a_user_is_an_edge_or_an_agent_and_tokens_need_an_edge(loaded: Load) -> None:
    both = EDGE + '[identity.peercred.principals.991]\nprincipal = "a"\n'
    assert any("user 991 has a mapping" in one.text for one in loaded(TABLE, head=both).problems)
    assert any("edge_uids: is missing" in one.text for one in loaded(TABLE, head="").problems)


def test_all_problems_are_named_at_once(loaded: Load) -> None:
    found = loaded(
        TABLE.replace("RS256", "none"), OTHER + 'principal = "x"\n', "", head="[identity]\nedge_uids = [-1]\n"
    )
    assert len(found.problems) >= 8
