"""The normal form of a request's URI."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from latchgate._crypto import _normalize_htu

from ipc.network.htu import normalise_htu


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("http://h", "http://h/"),
        ("http://h?q", "http://h/"),
        ("http://h#f", "http://h/"),
        ("HTTP://H:80/P?q#f", "http://h/P"),
        ("https://H:443", "https://h/"),
        ("https://h:80/", "https://h:80/"),
        ("http://[::1]:80/x", "http://[::1]/x"),
        ("http://[::80]/x", "http://[::80]/x"),
        ("http://h:8080/x", "http://h:8080/x"),
        ("http://h//a//b/", "http://h//a//b/"),
        ("http://h/%7Euser/../A", "http://h/%7Euser/../A"),
    ],
)
def test_an_htu_is_compared_in_its_normal_form(uri: str, normal: str) -> None:
    assert normalise_htu(uri) == normal
    assert normalise_htu(normal) == normal


@pytest.mark.parametrize(
    "uri",
    ["", "/", "h", "//h/x", "ftp://h/", "http:/h", "http", "https:h", "http://", "http:///x", "http://?x", "http://é/"],
)
def test_a_uri_that_is_not_absolute_http_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        normalise_htu(uri)


PIECES = st.sampled_from(["/", ":80", ":443", ":8080", "?", "#", "a", "B", "[::1]", "%2F", ".", "//", "@"])


@given(st.sampled_from(["http://", "HTTPS://", "Http://"]), st.lists(PIECES, min_size=1, max_size=8))
def test_it_agrees_with_the_public_client_wherever_both_have_an_answer(scheme: str, pieces: list[str]) -> None:
    uri = scheme + "H" + "".join(pieces)
    assert normalise_htu(uri) == _normalize_htu(uri)
