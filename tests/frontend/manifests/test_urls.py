import re
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import uritemplate
from hypothesis import assume, given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.manifests.urls import MAX_URL_CHARACTERS, TemplateRefused, UrlTemplate


def rendered(template: str, **request: Any) -> str:
    return UrlTemplate(template).render(request)[0]


def rule_of(template: str, **request: Any) -> str:
    with pytest.raises(GateError) as refused:
        UrlTemplate(template).render(request)
    assert refused.value.code == "schema_violation"
    return str(refused.value.extra["reason"])


@pytest.mark.parametrize(
    ("template", "mend"),
    [
        ("api.example.com/", "whole address"),
        ("ftp://api.example.com/", "whole address"),
        ("HTTPS://api.example.com/", "whole address"),
        ("https://api.example.com/#top", "whole address"),
        ("{scheme}://api.example.com/", "whole address"),
        ("https://user@api.example.com/", "https://{host}"),
        ("https://{user}@api.example.com/", "https://{host}"),
        ("https://{sub}.example.com/", "https://{host}"),
        ("https://api.example.com{+path}", "https://{host}"),
        ("https://api.example.com:{port}/", "https://{host}"),
        ("https://api.example.com:0/", "https://{host}"),
        ("https://api.example.com:70000/", "https://{host}"),
        ("https://api.example.com:/", "https://{host}"),
        ("https:///path", "https://{host}"),
        ("https://{+host}/", "Write {name}"),
        ("https://10.0.0.1/", "domain name"),
        ("https://[::1]/", "https://{host}"),
        ("https://localhost/", "domain name"),
        ("https://API.example.com/", "Write api.example.com"),
        ("https://api.example.com/{?q}", "one of them"),
        ("https://api.example.com/{a,b}", "one of them"),
        ("https://api.example.com/{a*}", "one of them"),
        ("https://api.example.com/{a:3}", "one of them"),
        ("https://api.example.com/{/a}", "one of them"),
        ("https://api.example.com/{#a}", "one of them"),
        ("https://api.example.com/{a b}", "one of them"),
        ("https://api.example.com/{}", "one of them"),
        ("https://api.example.com/{{a}}", "%XX"),
        ("https://api.example.com/{a", "%XX"),
        ("https://api.example.com/a b", "%XX"),
        ("https://api.example.com/%zz", "%XX"),
        ("https://api.example.com/a\\b", "%XX"),
        ("https://api.example.com/a?q=<", "%XX"),
        ("https://api.example.com/a/../b", "without them"),
        ("https://api.example.com/a//{b}", "without them"),
        ("https://api.example.com/%2e%2e/b", "without them"),
        ("https://api.example.com/a?{+q}", "Write {name}"),
    ],
)
def test_a_template_with_another_reading_is_refused_with_a_mend(template: str, mend: str) -> None:
    with pytest.raises(TemplateRefused) as refused:
        UrlTemplate(template)
    assert mend in refused.value.mend


@pytest.mark.parametrize(
    ("template", "request_", "url"),
    [
        ("https://a.example", {}, "https://a.example/"),
        ("https://a.example?q={q}", {"q": "1"}, "https://a.example/?q=1"),
        ("https://a.example:8443/v1", {}, "https://a.example:8443/v1"),
        ("http://a.example/{+path}", {"path": "x/y"}, "http://a.example/x/y"),
        ("http://a.example/{+path}", {"path": "/x/y"}, "http://a.example/x/y"),
        ("http://a.example/{+path}", {"path": "/"}, "http://a.example/"),
        ("http://a.example/{+path}", {"path": "x?limit=5&o=a/b"}, "http://a.example/x?limit=5&o=a/b"),
        ("http://a.example/v1{+path}", {"path": "/x"}, "http://a.example/v1/x"),
        ("http://a.example/{+path}", {"path": "a%20b%zz[c]"}, "http://a.example/a%20b%25zz%5Bc%5D"),
        ("http://a.example/{id}", {"id": "a/b?c#d e%"}, "http://a.example/a%2Fb%3Fc%23d%20e%25"),
        ("http://a.example/{id}", {"id": "é😀~"}, "http://a.example/%C3%A9%F0%9F%98%80~"),
        ("http://a.example/{n}/{t}", {"n": 7, "t": True}, "http://a.example/7/true"),
        ("http://a.example/{n}", {"n": 1.0}, "http://a.example/1"),
        ("http://a.example/a?q={q}&r={r}", {"q": "a&r=b"}, "http://a.example/a?q=a%26r%3Db&r="),
        ("http://a.example/a?q={q}", {"q": "..\\//"}, "http://a.example/a?q=..%5C%2F%2F"),
        ("https://{host}/v1", {"host": "API.Example.com"}, "https://api.example.com/v1"),
        ("https://{host}:8443/v1", {"host": "bücher.example"}, "https://xn--bcher-kva.example:8443/v1"),
        ("http://a.example/{a}.json", {"a": "..."}, "http://a.example/....json"),
    ],
)
def test_values_are_rendered_in_their_place(template: str, request_: dict[str, Any], url: str) -> None:
    assert rendered(template, **request_) == url


@pytest.mark.parametrize(
    ("template", "value", "rule"),
    [
        ("{+p}", "../admin", "dot_segment"),
        ("{+p}", "a/./b", "dot_segment"),
        ("{+p}", "a/..", "dot_segment"),
        ("{+p}", "%2e%2e/admin", "dot_segment"),
        ("{+p}", "%252e%252e/admin", "dot_segment"),
        ("{+p}", "a/..%2fadmin", "dot_segment"),
        ("{+p}", "a/..;x=1/admin", "dot_segment"),
        ("{+p}", "//evil.example/a", "empty_segment"),
        ("{+p}", "a//b", "empty_segment"),
        ("{+p}", "a\\b", "backslash"),
        ("{+p}", "a%5Cb", "backslash"),
        ("{+p}", "a#b", "fragment"),
        ("{+p}", "a\r\nHost: b", "control_character"),
        ("{+p}", "a%0d%0ab", "control_character"),
        ("{+p}", "a\x85b", "control_character"),
        ("{+p}/end", "a?b", "query"),
        ("{+p}?mode=safe", "a?mode=other", "query"),
        ("{+p}/end", "", "empty_segment"),
        ("{+p}", "x" * MAX_URL_CHARACTERS, "url_too_long"),
        ("{p}", "..", "dot_segment"),
        ("{p}", ".", "dot_segment"),
        ("{p}", "../admin", "dot_segment"),
        ("{p}", "", "empty"),
        ("{p}", "a\\b", "backslash"),
        ("{p}", "a\nb", "control_character"),
        ("{p}", None, "required"),
        ("{p}", ["a"], "type"),
        ("{p}", {"a": 1}, "type"),
        ("a?q={p}", "a\x00", "control_character"),
        ("a?q={p}", [1], "type"),
    ],
)
def test_a_value_that_would_leave_its_place_is_refused_by_rule(template: str, value: Any, rule: str) -> None:
    assert rule_of(f"https://a.example/{template}", p=value) == f"/p: {rule}"


def test_two_values_can_not_climb_together() -> None:
    assert rule_of("https://a.example/x/{a}{b}/y", a=".", b=".") == "/b: dot_segment"


@pytest.mark.parametrize(
    "host",
    [
        "", "localhost", "127.0.0.1", "0x7f000001", "2130706433", "[::1]", "a.example:99", "u@a.example", "a.example/x",
        "a.example?x", "a.example#x", "a.example\\x", "a.example.", ".example", "*.example.com", "a b.example", None, 5,
        "a.example\n", "a%2eexample",
    ],
)  # fmt: skip
def test_a_host_from_the_request_is_a_domain_and_nothing_else(host: Any) -> None:
    assert rule_of("https://{host}/v1", host=host) == "/host: domain"


def test_which_variables_are_needed() -> None:
    template = UrlTemplate("https://{h}:1/{a}/{+b}?c={c}")
    assert template.variables == ("h", "a", "b", "c")
    assert template.needed == ("h", "a", "b")


hostile = st.text("ab/.%2eE5cC\\?#@:&=; \r\n\x00[]{}é\u202e。", max_size=20) | st.text(max_size=20)
templates = st.sampled_from(
    [
        "https://a.example/{+p}", "https://a.example/{p}", "https://a.example/x/{p}/y", "https://a.example/x{+p}",
        "https://a.example:8443/{p}{+q}", "https://a.example/a?p={p}&q={q}", "https://a.example/{+p}/{q}?r={p}",
    ]
)  # fmt: skip


@given(templates, hostile, hostile)
def test_no_value_changes_anything_but_its_own_place(template: str, p: str, q: str) -> None:
    compiled = UrlTemplate(template)
    try:
        url, host = compiled.render({"p": p, "q": q})
    except GateError:
        return
    split, static = urlsplit(url), urlsplit(template)
    assert (split.scheme, split.netloc, split.fragment) == (static.scheme, static.netloc, "")
    assert host == "a.example"
    assert re.fullmatch(r"[!-~]+", url)
    assert "\\" not in url
    assert split.path.startswith("/")
    assert "//" not in split.path
    seen = unquote(unquote(split.path))
    assert not any(segment.split(";")[0] in {".", ".."} for segment in re.split(r"[/\\]", seen))
    if static.query:
        assert [pair.split("=")[0] for pair in split.query.split("&")] == [
            pair.split("=")[0] for pair in static.query.split("&")
        ]


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_host_variable_is_all_that_it_changes(host: str, p: str) -> None:
    try:
        url, rendered_host = UrlTemplate("https://{h}:8443/{p}").render({"h": host, "p": p})
    except GateError:
        return
    split = urlsplit(url)
    assert (split.hostname, split.port, split.username) == (rendered_host, 8443, None)


@given(templates, hostile, hostile)
def test_what_is_taken_renders_as_rfc_6570_says(template: str, p: str, q: str) -> None:
    # Two places where the library and the RFC differ from what may be sent: brackets, and text beside a percent sign.
    assume(not set("[]%") & set(p + q))
    try:
        url, _ = UrlTemplate(template).render({"p": p, "q": q})
    except GateError:
        return
    expected = uritemplate.expand(template, p=p, q=q)
    assert url in {expected, expected.replace("https://a.example//", "https://a.example/", 1)}
