"""Secrets in the query and as passwords: where they are sent, and where they never show."""

import base64

import pytest

from ipc.configuration.secret_ways import AnySecretWay, AsParameter, AsPassword
from ipc.plan import SecretUse
from tests.support.http_host import Client, request
from tests.support.worker_plans import http_plan
from tests.support.worker_upstream import ok, saying, upstream

VALUE = "k3y &of+spaces"
URL = "http://upstream.test/path?q=1"


def client(address: str, way: AnySecretWay, *, domain: str = "upstream.test") -> Client:
    use = SecretUse("key", way=way, domains=(domain,))
    return Client(http_plan(address=address, secrets=(use,)), secrets={"key": VALUE})


def first_line(sent: bytes) -> bytes:
    return sent.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        (URL, b"GET /path?q=1&key=k3y%20%26of%2Bspaces HTTP/1.1"),
        ("http://upstream.test/path", b"GET /path?key=k3y%20%26of%2Bspaces HTTP/1.1"),
        ("http://upstream.test", b"GET /?key=k3y%20%26of%2Bspaces HTTP/1.1"),
        ("http://upstream.test/path?", b"GET /path?key=k3y%20%26of%2Bspaces HTTP/1.1"),
    ],
)
def test_a_secret_of_the_query_is_sent_at_its_end_and_observed_nowhere(url: str, sent: bytes) -> None:
    with upstream(ok()) as up:
        one = client(up.address, AsParameter("key"))
        one.send(request(url))
        assert first_line(up.requests[0]) == sent
    (seen,) = one.meter.observations
    assert seen.target == f"GET {url}"


def test_a_secret_of_the_query_goes_to_its_own_hosts_alone() -> None:
    with upstream(ok()) as up:
        client(up.address, AsParameter("key"), domain="other.test").send(request(URL))
        assert first_line(up.requests[0]) == b"GET /path?q=1 HTTP/1.1"


@pytest.mark.parametrize("query", ["key=mine", "a=1&key", "k%65y=mine", "a=1;key=2", "key=", "a=1&ke%79=3&b=2"])
def test_a_request_with_a_parameter_of_its_own_where_a_secret_goes_is_refused(query: str) -> None:
    with upstream(ok()) as up:
        kind, message = client(up.address, AsParameter("key")).refused(request(f"http://upstream.test/?{query}"))
        assert (kind, message) == ("denied", "the request has a parameter of its own where a secret goes")
        assert up.requests == []


def test_a_password_is_sent_with_its_user_in_place_of_what_the_guest_sends() -> None:
    with upstream(ok()) as up:
        client(up.address, AsPassword("alice")).send(request(headers=(("Authorization", "guest"),)))
        credentials = base64.b64encode(f"alice:{VALUE}".encode())
        lines = [line for line in up.requests[0].split(b"\r\n") if line.lower().startswith(b"authorization")]
    assert lines == [b"authorization: Basic " + credentials]


@pytest.mark.parametrize(
    ("way", "body"),
    [
        (AsParameter("key"), b"you asked for /path?key=k3y%20%26of%2Bspaces"),
        (AsParameter("key"), b"you asked for /path?key=k3y+%26of%2bspaces"),
        (AsPassword("alice"), base64.b64encode(f"alice:{VALUE}".encode())),
        (AsPassword("alice"), f'{{"password":"{VALUE}"}}'.encode()),
    ],
)
def test_an_answer_that_repeats_a_query_or_a_password_is_refused(way: AnySecretWay, body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    with upstream(saying(head + body)) as up:
        one = client(up.address, way)
        assert one.refused(request(URL)) == ("denied", "the upstream's answer repeats the secret key")
        assert VALUE not in repr(one.meter.observations)
