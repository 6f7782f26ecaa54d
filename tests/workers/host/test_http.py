"""The http host call against real servers: where it goes, what it sends, and what never leaves."""

import hashlib
import socket
from typing import Any

import pytest

from ipc.configuration.secret_ways import AsHeader
from ipc.messages.calling import Observation
from ipc.plan import PlanEgress, PlannedRequest, SecretUse
from tests.support.http_host import URL, Client, Names, asked, failing, request
from tests.support.worker_plans import http_plan
from tests.support.worker_upstream import Upstream, ok, upstream
from workers.host.http import GuestRequest
from workers.host.meter import IoBudgetExceeded


def lines(up: Upstream) -> list[str]:
    return up.requests[0].split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")


def test_a_request_goes_out_and_its_answer_is_observed() -> None:
    response, up, client = asked(
        ok(b'{"a":1}', "201 Created", b"X-Trace: t\r\n"),
        request(method="POST", headers=(("Content-Type", "application/json"), ("X-One", "1")), body='{"b":"\u00e9"}'),
    )
    assert (response.status, response.body, dict(response.headers)["x-trace"]) == (201, b'{"a":1}', "t")
    head = lines(up)
    assert head[0] == "POST /path?q=1 HTTP/1.1"
    assert {"host: upstream.test", "content-length: 10", "content-type: application/json"} <= set(head)
    assert up.requests[0].endswith('\r\n\r\n{"b":"é"}'.encode())
    assert client.meter.observations == [
        Observation(
            "http", f"POST {URL}", ok=True, status=201, bytes=7,
            body_sha256="sha256:" + hashlib.sha256(b'{"a":1}').hexdigest(),
        )
    ]  # fmt: skip
    assert client.meter.io_calls == 1


def test_a_body_may_be_bytes() -> None:
    _, up, _ = asked(ok(), request(method="POST", body="/wBB", body_encoding="base64"))
    assert up.requests[0].endswith(b"\r\n\r\n\xff\x00A")


@pytest.mark.parametrize(
    "url",
    [
        "http://other.test/",
        "http://x.upstream.test/",
        "http://upstream.test.evil.test/",
        "http://127.0.0.1/",
        "nonsense",
    ],
)
def test_only_allowed_domains_are_asked(url: str) -> None:
    with upstream(ok()) as up:
        names = Names()
        client = Client(http_plan(address=up.address), names=names)
        assert client.refused(request(url))[0] in ("denied", "invalid-input")
        assert (up.requests, names.questions) == ([], [])


def test_a_wildcard_allows_what_lies_below() -> None:
    with upstream(ok()) as up:
        egress = PlanEgress(
            profile="direct_allowlist", allowed_domains=("*.upstream.test",), allowed_methods=("GET",),
            unsafe_resolve={"a.upstream.test": up.address},
        )  # fmt: skip
        plan = http_plan(egress=egress)
        assert Client(plan).send(request("http://a.upstream.test/")).status == 200
        assert Client(plan).refused(request("http://upstream.test/"))[0] == "denied"


@pytest.mark.parametrize("method", ["DELETE", "get", "CONNECT", "TRACE", "GET / HTTP/1.1\r\nX:", "", "PATCH"])
def test_only_allowed_methods_are_used(method: str) -> None:
    assert failing(ok(), request(method=method))[0] == "denied"


def test_without_egress_nothing_goes_out() -> None:
    assert Client(http_plan(egress=PlanEgress())).refused(request())[0] == "denied"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1", "100.64.0.1", "::1", "::ffff:127.0.0.1", "fd00::1",
        "fe80::1", "64:ff9b::7f00:1",
    ],
)  # fmt: skip
def test_a_name_that_leads_to_a_private_address_is_denied(address: str) -> None:
    names = Names([address])
    kind, message = Client(http_plan(), names=names).refused(request())
    assert kind == "denied"
    assert address not in message


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Addresses that were connected to; every one refuses."""
    addresses: list[tuple[str, int]] = []

    def refuse(_: socket.socket, address: tuple[str, int]) -> None:
        addresses.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return addresses


def test_only_public_addresses_of_a_name_are_used(dialled: list[tuple[str, int]]) -> None:
    names = Names(["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1111"])
    assert Client(http_plan(), names=names).refused(request())[0] == "unavailable"
    assert dialled == [("8.8.8.8", 80), ("2606:4700::1111", 80)]


def test_a_name_is_resolved_once_for_a_request(dialled: list[tuple[str, int]]) -> None:
    # The second answer is the one a rebinding server would give to a second question.
    names = Names(["8.8.8.8", "1.1.1.1"], ["127.0.0.1"])
    assert Client(http_plan(), names=names).refused(request())[0] == "unavailable"
    assert names.questions == ["upstream.test"]
    assert dialled == [("8.8.8.8", 80), ("1.1.1.1", 80)]


def test_a_port_of_its_own_is_only_for_a_planned_request() -> None:
    names = Names()
    url = "http://upstream.test:22/"
    assert Client(http_plan(), names=names).refused(request(url))[0] == "denied"
    assert names.questions == []


def planned(url: str = URL, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"method": "POST", "url": url, "headers": (("X-Plan", "yes"),), "body": '{"to":"a"}'}
    return {"http_request": PlannedRequest(**(values | changes))}


def test_a_planned_request_is_sent_with_the_plans_headers_and_not_the_guests() -> None:
    wanted = request(method="POST", body='{"to":"a"}', headers=(("X-Guest", "1"), ("X-HTTP-Method-Override", "DELETE")))
    _, up, _ = asked(ok(), wanted, **planned())
    head = lines(up)
    assert "x-plan: yes" in head
    assert not any("guest" in line or "override" in line for line in head)


@pytest.mark.parametrize(
    "wanted",
    [
        request(method="GET", body='{"to":"a"}'),
        request(method="POST", body='{"to":"b"}'),
        request(method="POST", body='{"to":"a"} '),
        request(method="POST", body=""),
        request("http://upstream.test/path?q=2", method="POST", body='{"to":"a"}'),
        request("http://upstream.test/path", method="POST", body='{"to":"a"}'),
        request("http://UPSTREAM.test/path?q=1", method="POST", body='{"to":"a"}'),
    ],
    ids=["method", "body", "space", "no body", "query", "path", "spelling"],
)
def test_any_other_request_than_the_planned_one_is_denied(wanted: GuestRequest) -> None:
    with upstream(ok()) as up:
        client = Client(http_plan(address=up.address, **planned()))
        assert client.refused(wanted) == ("denied", "the request is not the one that was planned")
        assert up.requests == []


def test_a_planned_request_without_a_body_has_none() -> None:
    _, up, _ = asked(ok(), request(), **planned(method="GET", body=None))
    assert up.requests[0].endswith(b"\r\n\r\n")


def test_an_unresolved_domain_is_asked_only_when_a_person_approved() -> None:
    names = Names(["127.0.0.1"])
    plan = http_plan(unresolved_domains=("new.test",))
    assert Client(plan, names=names).refused(request("http://new.test/"))[1].startswith("the domain is not in")
    kind, message = Client(plan, names=names, is_approved=True).refused(request("http://new.test/"))
    assert (kind, message) == ("denied", "the domain leads to a private or reserved address")


@pytest.mark.parametrize(
    "header",
    [
        ("Host", "evil.test"), ("Connection", "upgrade"), ("Content-Length", "5"), ("Transfer-Encoding", "chunked"),
        ("TE", "trailers"), ("Upgrade", "h2c"), ("Expect", "100-continue"), ("Keep-Alive", "1"), ("Trailer", "x"),
        ("Proxy-Authorization", "x"), ("Proxy-Anything", "x"), ("HTTP2-Settings", "x"),
        ("X", "a\r\nY: b"), ("X", "a\nb"), ("X", "a\rb"),
        ("X", "a\0b"),
        ("X\r\nY", "a"), ("X Y", "a"), ("X:", "a"), ("", "a"), ("X", "é"), ("X", "\u0100"), ("X", "y" * 9000),
    ],
)  # fmt: skip
def test_a_header_that_could_change_the_message_is_refused(header: tuple[str, str]) -> None:
    assert failing(ok(), request(headers=(header,)))[0] == "invalid-input"


def test_too_many_headers_are_refused() -> None:
    assert failing(ok(), request(headers=tuple((f"X-{n}", "1") for n in range(65))))[0] == "invalid-input"


SECRET = "s3cret-value"


def with_secret(**changes: Any) -> dict[str, Any]:
    use: dict[str, Any] = {
        "way": AsHeader("Authorization", "Bearer {value}"),
        "domains": ("upstream.test",),
    } | changes
    return {"secrets": (SecretUse("token", **use),)}


def test_a_secret_is_added_by_the_host_in_place_of_what_the_guest_sends() -> None:
    with upstream(ok()) as up:
        client = Client(http_plan(address=up.address, **with_secret()), secrets={"token": SECRET})
        client.send(request(headers=(("authorization", "guest"),)))
    assert [line for line in lines(up) if line.startswith("authorization")] == [f"authorization: Bearer {SECRET}"]


def test_a_secret_without_a_way_is_not_sent() -> None:
    with upstream(ok()) as up:
        Client(http_plan(address=up.address, **with_secret(way=None)), secrets={"token": SECRET}).send(request())
    assert SECRET.encode() not in up.requests[0]


def test_an_optional_secret_may_be_absent_and_a_required_one_may_not() -> None:
    with upstream(ok()) as up:
        Client(http_plan(address=up.address, **with_secret(required=False))).send(request())
        assert Client(http_plan(address=up.address, **with_secret())).refused(request())[0] == "unavailable"
        assert len(up.requests) == 1


def test_a_secret_goes_nowhere_without_tls() -> None:
    client = Client(http_plan(**with_secret()), secrets={"token": SECRET}, names=Names(["8.8.8.8"]))
    assert client.refused(request()) == ("denied", "a secret is never sent without TLS")


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0b", "é", "x" * 9000])
def test_a_secret_that_would_break_the_head_is_not_sent_and_not_shown(value: str) -> None:
    with upstream(ok()) as up:
        client = Client(http_plan(address=up.address, **with_secret()), secrets={"token": value})
        kind, message = client.refused(request())
        assert kind == "internal"
        assert value not in message
        assert up.requests == []


def test_every_attempt_counts_and_the_budget_ends_the_call() -> None:
    client = Client(http_plan(), budget=1)
    client.refused(request("nonsense"))
    with pytest.raises(IoBudgetExceeded):
        client.send(request())
    assert client.meter.is_exceeded
