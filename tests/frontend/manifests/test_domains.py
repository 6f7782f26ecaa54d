import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.manifests.domains import InvalidDomain, normal_domain, normal_rule
from ipc.network.domains import matches


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("api.example.com", "api.example.com"),
        ("API.Example.COM", "api.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("faß.example", "xn--fa-hia.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("r3---sn-4g5.example.com", "r3---sn-4g5.example.com"),
        ("1password.example", "1password.example"),
    ],
)
def test_a_name_has_one_normal_form(name: str, normal: str) -> None:
    assert normal_domain(name) == normal


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "com", "localhost", "api.localhost", "LOCALHOST", "127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1",
        "example.0x7f", "example.1", "1.2.3.4.", "[::1]", "::1", "example.com.", ".example.com", "a..example.com",
        "exa mple.com", "user@example.com", "example.com:443", "example.com/path", "-a.example.com", "a-.example.com",
        "under_score.example.com", "*.example.com", "example.com\n", "a" * 64 + ".example.com", "a." * 130 + "com",
        "xn--.example.com", "xn--a.example", "\uff11\uff12\uff17.0.0.1", "example。1", "\ud800.example",
        "a\u202eb.example",
    ],
)  # fmt: skip
def test_what_is_no_domain_of_effects_is_refused(name: str) -> None:
    with pytest.raises(InvalidDomain) as refused:
        normal_domain(name)
    assert name not in str(refused.value) or len(name) < 4


def test_a_wildcard_stands_only_before_at_least_two_labels() -> None:
    assert normal_rule("*.Example.com") == "*.example.com"
    for rule in ("*", "*.", "*.com", "*.localhost", "a.*.com", "**.example.com", "*.*.example.com", "*example.com"):
        with pytest.raises(InvalidDomain):
            normal_rule(rule)


def test_a_wildcard_matches_any_name_below_and_not_the_name_itself() -> None:
    assert matches("a.example.com", ["*.example.com"])
    assert matches("a.b.example.com", ["*.example.com"])
    assert not matches("example.com", ["*.example.com"])
    assert not matches("evilexample.com", ["*.example.com"])
    assert matches("example.com", ["x.test", "example.com"])
    assert not matches("sub.example.com", ["example.com"])


@given(st.text(max_size=40))
def test_the_normal_form_is_normal(name: str) -> None:
    try:
        normal = normal_domain(name)
    except InvalidDomain:
        return
    assert normal_domain(normal) == normal
    assert normal.isascii()
    assert normal == normal.lower()
