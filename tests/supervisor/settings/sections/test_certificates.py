"""`[[identity.certificates]]` in the configuration."""

import pytest

from ipc.configuration.certificates import CertificateSettings
from supervisor.settings.config import Loaded
from supervisor.settings.sections.certificates import MAX_CERTIFICATES
from tests.supervisor.settings.parsed import checked, with_rows

EDGE = "[identity]\nedge_uids = [991]\n"
ISSUER = """[[identity.issuers]]
name = "corp"
issuer = "https://login.example"
audience = "https://gate.example"
jwks_url = "https://login.example/keys"
algorithms = ["RS256"]
"""


def row(san: str, principal: str, more: str = "") -> str:
    return f'san = "{san}"\nprincipal = "{principal}"\n{more}'


def loaded(*tables: str, head: str = EDGE) -> Loaded:
    return checked(with_rows("identity.certificates", tables, head))


def test_a_name_has_the_documented_defaults() -> None:
    more = 'owner = "team"\nscopes = ["a:bc"]\n'
    settings = loaded(row("*.agents.example", "host:{san}"), row("spiffe://corp/agent/*", "agent:{*}", more)).settings
    assert settings is not None
    assert settings.identity.certificates == (
        CertificateSettings("*.agents.example", "host:{san}", ("tools:call",), None),
        CertificateSettings("spiffe://corp/agent/*", "agent:{*}", ("a:bc",), "team"),
    )


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (['principal = "a"\n'], "identity.certificates[0].san: is missing"),
        (['san = "a.example"\n'], "identity.certificates[0].principal: is missing"),
        ([row("*", "a")], "must be a URI, a DNS name or an e-mail address"),
        ([row("bücher.example", "a")], "must be a URI, a DNS name or an e-mail address"),
        ([row("spiffe://corp/a*", "a")], "with * only as one whole segment or label"),
        ([row("a.example", "{sub}")], "and then {san} or {*}"), ([row("a.example", "{san}x")], "and then {san} or {*}"),
        ([row("a.example", "{*}")], "san has not exactly one *"),
        ([row("*.*.example", "{*}")], "san has not exactly one *"),
        ([row("spiffe://corp/~agent/*", "x:{san}")], "makes no principal of such a name"),
        ([row("a.example", "a"), row("a.example", "b")], "is there twice"),
        ([row("a.*.example", "a"), row("*.b.example", "b")], "neither is the more special"),
        ([row("spiffe://corp/a/*", "{*}"), row("spiffe://corp/b/*", "{*}")], "could make the same principals"),
        ([row("*.a.example", "x:{san}"), row("*.b.example", "x:y:{san}")], "could make the same principals"),
        ([row("*.a.example", "x:{san}"), row("spiffe://corp/*", "x:{*}")], "could make the same principals"),
        ([row("spiffe://corp/*", "{san}"), row("spiffe://x/*", "spiffe:corp:{*}")], "could make the same principals"),
        ([row(f"a{one}.example", "a") for one in range(MAX_CERTIFICATES + 1)], f"{MAX_CERTIFICATES} are the most"),
    ],
)  # fmt: skip
def test_a_row_that_will_not_do_is_named(tables: list[str], said: str) -> None:
    found = loaded(*tables)
    assert found.settings is None
    assert any(said in problem.text for problem in found.problems), [one.text for one in found.problems]


@pytest.mark.parametrize(
    "tables",
    [
        [row("a.*.example", "a"), row("*.*.example", "b"), row("a.b.example", "c")],
        [row("*.a.example", "x:{san}"), row("spiffe://corp/agent/*", "x:{san}"), row("bob@corp.example", "x:{san}")],
        [row("spiffe://corp/a/*", "a:{*}"), row("spiffe://corp/b/*", "b:{*}"), row("spiffe://corp/c/*", "a:c")],
    ],
)
def test_rows_of_which_one_is_the_more_special_or_whose_principals_differ_stand_together(tables: list[str]) -> None:
    assert loaded(*tables).settings is not None, loaded(*tables).problems


@pytest.mark.parametrize(
    ("form", "issuers", "is_good"),
    [
        ("x509:{san}", "", False), ("x509:{san}", 'principal = "x509:{san}"\n', False),
        ("x509:{san}", 'principal = "corp:{sub}"\n', True), ("fixed", "", True),
        ("x509:{san}", 'principals = {"a" = {principal = "a"}}\n', True),
    ],
)  # fmt: skip
def test_forms_of_certificates_and_of_issuers_begin_differently(form: str, issuers: str, is_good: bool) -> None:
    found = loaded(row("*.a.example", form), head=f"{EDGE}{ISSUER}{issuers}")
    assert (found.settings is not None) == is_good
    said = "identity.certificates[0].principal: could make the same principals as a row of identity.issuers"
    assert any(said in one.text for one in found.problems) != is_good


def test_certificates_need_an_edge() -> None:
    found = loaded(row("a.example", "a"), head="")
    assert any("edge_uids: is missing" in one.text for one in found.problems)
