"""Answers that repeat a secret: in which forms it is found, and what is no secret."""

import base64
import html
import json
import tracemalloc
import urllib.parse
from itertools import count

import pytest

from ipc.configuration.secret_ways import AsHeader
from ipc.plan import SecretUse
from tests.support.http_host import Client, request
from tests.support.worker_plans import http_plan
from tests.support.worker_upstream import ok, saying, upstream
from workers.host.meter import HostError
from workers.host.reflections import Reflections
from workers.host.wire import Response

VALUE = 'tok/3f81"c6+a2&d=9'
RAW = VALUE.encode()
PAIR = "robot:long password"
BASIC = base64.b64encode(PAIR.encode()).decode()
FORMS = {
    "as it is": RAW,
    "in capitals": RAW.upper(),
    "over several lines": b'tok/3f81"\n c6+a2\r\n&d=9',
    "JSON": json.dumps({"a": VALUE}).encode(),
    "JSON in JSON": json.dumps(json.dumps({"a": VALUE})).encode(),
    "JSON with slashes escaped": json.dumps(VALUE).replace("/", "\\/").encode(),
    "JSON with every character escaped": b'"' + b"".join(b"\\u%04x" % one for one in RAW) + b'"',
    "hexadecimal escapes": b"".join(b"\\x%02X" % one for one in RAW),
    "percent-encoded": urllib.parse.quote(VALUE, safe="").encode(),
    "percent-encoded twice": urllib.parse.quote(urllib.parse.quote(VALUE, safe=""), safe="").encode(),
    "every byte percent-encoded": b"".join(b"%%%02x" % one for one in RAW),
    "HTML": html.escape(VALUE).encode(),
    "HTML by numbers": b"".join(b"&#%d;" % one for one in RAW),
    "hex": RAW.hex().upper().encode(),
    "UTF-16": VALUE.encode("utf-16"),
    "UTF-16 in base64": base64.b64encode(VALUE.encode("utf-16-le")),
    "base64 of JSON": base64.b64encode(json.dumps({"headers": {"authorization": VALUE}}).encode()),
    "base64 over several lines": base64.encodebytes(b"x" * 50 + RAW + b"x" * 50),
}


def found(body: bytes, headers: tuple[tuple[str, str], ...] = (), **secrets: str) -> str | None:
    return Reflections(secrets or {"token": VALUE}).found_in(Response(200, headers, body), lambda: None)


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_every_form_that_servers_write(form: str) -> None:
    assert found(b"<<" + FORMS[form] + b">>") == "token"


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_is_found_at_any_place_of_a_text_in_base64(encode: object, before: int) -> None:
    assert callable(encode)
    for after in range(3):
        assert found(b'{"data":"' + encode(b"?" * before + RAW + b"~" * after) + b'"}') == "token"


def test_a_secret_is_found_in_a_header() -> None:
    assert found(b"{}", (("location", f"https://a.test/?token={urllib.parse.quote(VALUE)}"),)) == "token"


@pytest.mark.parametrize("shown", [BASIC, PAIR, "long password"])
@pytest.mark.parametrize("kept", [BASIC, f"Basic {BASIC}", PAIR])
def test_the_password_of_credentials_is_a_secret_as_the_whole_of_them_is(kept: str, shown: str) -> None:
    assert found(shown.encode(), token=kept) == "token"


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"Bearer", b"robot", RAW[:-1], RAW[1:], RAW[::-1], b"%", b"\\", b"&", b"\\u00", b"%zz", b"&nope;"],
)  # fmt: skip
def test_an_answer_without_the_secret_does_not_count_as_repeating_it(body: bytes) -> None:
    assert found(body) is None
    assert found(body, token=f"Basic {BASIC}") is None


def test_a_search_ends_with_the_time_of_the_call() -> None:
    def over() -> None:
        raise HostError("timeout", "the call's time is over")

    with pytest.raises(HostError):
        Reflections({"token": VALUE}).found_in(Response(200, (), b"%41" * 100_000), over)


USE = SecretUse("token", way=AsHeader("X-Token"), domains=("upstream.test",))
LONG = "0123456789abcdef"


def client(address: str, use: SecretUse = USE, value: str = LONG) -> Client:
    return Client(http_plan(address=address, secrets=(use,)), secrets={"token": value})


def test_an_answer_that_repeats_a_secret_is_refused_and_leaves_no_trace_of_it() -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % one for one in LONG.encode()) + b"0\r\n\r\n"
    with upstream(saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)) as up:
        one = client(up.address)
        assert one.refused(request()) == ("denied", "the upstream's answer repeats the secret token")
    (seen,) = one.meter.observations
    assert (seen.bytes, seen.body_sha256) == (None, None)
    assert LONG not in repr(seen)


def test_the_reason_phrase_and_the_trailers_of_an_answer_reach_no_guest() -> None:
    spoken = b"HTTP/1.1 200 %b\r\nTransfer-Encoding: chunked\r\n\r\n2;x=%b\r\n{}\r\n0\r\nX-A: %b\r\n\r\n"
    with upstream(saying(spoken % ((LONG.encode(),) * 3))) as up:
        assert LONG not in repr(client(up.address).send(request()))


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "identity, gzip", "GZIP"])
def test_a_compressed_answer_to_a_request_with_a_secret_is_refused(coding: str) -> None:
    with upstream(ok(b"\x1f\x8b", more=f"Content-Encoding: {coding}\r\n".encode())) as up:
        kind, message = client(up.address).refused(request(headers=(("Accept-Encoding", "gzip"),)))
        assert (kind, "can't be searched" in message) == ("denied", True)
        assert b"\r\naccept-encoding: identity\r\n" in up.requests[0]
        assert b"gzip" not in up.requests[0]
        assert Client(http_plan(address=up.address)).send(request()).body == b"\x1f\x8b"


def test_a_secret_is_sent_to_its_own_hosts_alone() -> None:
    with upstream(ok()) as up:
        client(up.address, SecretUse("token", way=AsHeader("X-Token"), domains=("other.test",))).send(request())
        client(up.address, SecretUse("token", way=AsHeader("X-Token"))).send(request())
        client(up.address, SecretUse("token", way=AsHeader("X-Token"), domains=("*.test",))).send(request())
    assert [LONG.encode() in one for one in up.requests] == [False, False, True]


def test_a_secret_that_could_not_be_found_again_is_not_sent() -> None:
    with upstream(ok()) as up:
        for value in ("1234567", "1 2 3 4 5"):
            assert client(up.address, value=value).refused(request())[0] == "denied"
        assert up.requests == []
        client(up.address, value="12345678").send(request())


@pytest.mark.parametrize("escape", [b"%41", b"\\u0041", b"\\n", b"&#65;"])
def test_the_search_takes_little_memory_however_many_escapes_an_answer_has(escape: bytes) -> None:
    body = escape * 20_000
    tracemalloc.start()
    try:
        assert found(body) is None
        assert tracemalloc.get_traced_memory()[1] < 6 * len(body)
    finally:
        tracemalloc.stop()


def test_the_time_of_a_call_is_looked_at_between_all_that_is_searched_for() -> None:
    """The search of each takes long in a large answer, and other calls of the worker search at the same time."""
    reflections, pulses = Reflections({"token": VALUE}), count()
    assert reflections.found_in(Response(200, (), b"nothing of it"), lambda: next(pulses)) is None
    assert next(pulses) >= len(reflections._forms["token"])
