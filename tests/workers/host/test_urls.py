"""One reading of a URL, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.network.domains import matches
from workers.host.meter import HostError
from workers.host.urls import Target, parse_url


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://a.test", Target("http", "a.test", 80, "/")),
        ("https://a.test/", Target("https", "a.test", 443, "/")),
        ("https://A.Test/p?q=1", Target("https", "a.test", 443, "/p?q=1")),
        ("http://a.test:8080/x", Target("http", "a.test", 8080, "/x")),
        ("http://a.test?q", Target("http", "a.test", 80, "/?q")),
        ("http://a-b.c1.test/%2e%2e/;x=(1)", Target("http", "a-b.c1.test", 80, "/%2e%2e/;x=(1)")),
        ("http://xn--nxasmq6b.test/", Target("http", "xn--nxasmq6b.test", 80, "/")),
    ],
)
def test_a_plain_url_is_read(url: str, target: Target) -> None:
    assert parse_url(url) == target


@pytest.mark.parametrize(
    "url",
    [
        "", "a.test", "//a.test/", "ftp://a.test/", "file:///etc/passwd", "HTTP://a.test/", "http:a.test", "http:///x",
        "http://user@a.test/", "http://a.test@evil.test/", "http://a.test:pw@evil.test/", "http://a.test\\@evil.test/",
        "http://a.test#@evil.test/", "http://a.test/#f", "http://a.test:/", "http://a.test:0/", "http://a.test:99999/",
        "http://a.test:080/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://localhost/", "http://LOCALHOST/",
        "http://a.localhost/", "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
        "http://0x7f.1/", "http://0177.0.0.1/", "http://a.test.1/", "http://single/", "http://a..test/", "http://.a.test/",
        "http://a.test./", "http://-a.test/", "http://a-.test/", "http://a_b.test/", "http://ä.test/", "http://a.test/ä",
        "http://a.test/ x", "http://a.test/\r\nX: y", "http://a.test/\n", "http://a.test/%", "http://a.test/%2", "http://a.test/<",
        "http://a.test/\x00", "http://a.test/?\"", "http://a\u3002test/", "http://" + "a" * 64 + ".test/",
        "http://a.test/" + "x" * 9000, "http://" + "a." * 130 + "test/",
    ],
)  # fmt: skip
def test_an_answer_that_readers_interpret_differently_is_refused(url: str) -> None:
    with pytest.raises(HostError) as caught:
        parse_url(url)
    assert caught.value.failure.kind in ("invalid-input", "denied")


@pytest.mark.parametrize(
    ("host", "rules", "allowed"),
    [
        ("a.test", ("a.test",), True),
        ("b.test", ("a.test",), False),
        ("x.a.test", ("a.test",), False),
        ("x.a.test", ("*.a.test",), True),
        ("y.x.a.test", ("*.a.test",), True),
        ("a.test", ("*.a.test",), False),
        ("xa.test", ("*.a.test",), False),
        ("evila.test", ("a.test", "*.a.test"), False),
        ("a.test.evil.test", ("a.test", "*.a.test"), False),
        ("a.test", (), False),
    ],
)
def test_a_rule_allows_one_name_or_those_below_it(host: str, rules: tuple[str, ...], allowed: bool) -> None:
    assert matches(host, rules) is allowed


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://a.test", "http://a.test/"]))
def test_no_text_gives_a_target_that_could_break_a_request_line(tail: str, head: str) -> None:
    try:
        target = parse_url(head + tail)
    except HostError:
        return
    assert target.path.startswith("/")
    assert target.path.isascii()
    assert target.path.isprintable()
    assert " " not in target.path
    assert set(target.host) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")
