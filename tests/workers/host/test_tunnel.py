"""The http host call through a proxy: what the proxy is asked, what goes through the tunnel, and who is believed."""

import base64
import hashlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.configuration.secret_ways import AsHeader
from ipc.messages.calling import Observation
from ipc.plan import Plan, PlannedRequest, SecretUse
from tests.support.http_host import URL, Client, Names, request
from tests.support.worker_plans import http_plan
from tests.support.worker_proxy import ESTABLISHED, letting_through, proxied_plan
from tests.support.worker_upstream import Answer, Upstream, certificate, ok, saying, upstream
from workers.host.connection import make_tls
from workers.host.meter import HostError
from workers.host.resolver import Resolver

SECRET = "s3cret-value"


@contextmanager
def tunnelled(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[tuple[Upstream, Upstream]]:
    """(the proxy, the upstream behind it)."""
    with upstream(answer, tls) as up, upstream(letting_through(up.address)) as proxy:
        yield proxy, up


def test_a_request_goes_through_a_tunnel_to_the_upstream_and_is_observed_as_any_other() -> None:
    names = Names()
    with tunnelled(ok(b'{"a":1}', "201 Created")) as (proxy, up):
        client = Client(proxied_plan(proxy.address), names=names)
        response = client.send(request(method="POST", body="x"))
    assert (response.status, response.body) == (201, b'{"a":1}')
    assert proxy.requests == [
        b"CONNECT upstream.test:80 HTTP/1.1\r\nhost: upstream.test:80\r\nuser-agent: action-gateway\r\n\r\n"
    ]
    assert up.requests[0].startswith(b"POST /path?q=1 HTTP/1.1\r\nhost: upstream.test\r\n")
    assert up.requests[0].endswith(b"\r\n\r\nx")
    assert names.questions == [], "the upstream's name was resolved here"
    seen = "sha256:" + hashlib.sha256(b'{"a":1}').hexdigest()
    assert client.meter.observations == [
        Observation("http", f"POST {URL}", ok=True, status=201, bytes=7, body_sha256=seen)
    ]


def test_the_upstreams_own_refusal_is_its_answer_and_not_the_proxys() -> None:
    with tunnelled(ok(b"no", "403 Forbidden")) as (proxy, _):
        assert Client(proxied_plan(proxy.address)).send(request()).status == 403


def test_a_planned_port_is_asked_of_the_proxy() -> None:
    url = "http://upstream.test:8080/x"
    planned = PlannedRequest(method="GET", url=url)
    with tunnelled(ok()) as (proxy, up):
        Client(proxied_plan(proxy.address, http_request=planned)).send(request(url))
    assert proxy.requests[0].startswith(b"CONNECT upstream.test:8080 HTTP/1.1\r\n")
    assert b"host: upstream.test:8080\r\n" in up.requests[0]


def tls_client(proxy: Upstream, trusted: Path, **changes: object) -> Client:
    context = make_tls()
    context.load_verify_locations(trusted)
    plan = msgspec.structs.replace(proxied_plan(proxy.address), **changes)
    return Client(plan, tls=context, secrets={"token": SECRET})


def test_tls_goes_through_the_tunnel_and_the_proxy_sees_nothing_of_it(tmp_path: Path) -> None:
    trusted, context = certificate(tmp_path, "upstream.test")
    use = SecretUse("token", way=AsHeader("Authorization", "Bearer {value}"), domains=("upstream.test",))
    with tunnelled(ok(b"safe"), context) as (proxy, up):
        client = tls_client(proxy, trusted, secrets=(use,))
        assert client.send(request("https://upstream.test/")).body == b"safe"
    assert proxy.requests[0].startswith(b"CONNECT upstream.test:443 HTTP/1.1\r\n")
    assert f"authorization: Bearer {SECRET}".encode() in up.requests[0]
    assert SECRET.encode() not in b"".join(proxy.requests)


def test_a_proxy_that_leads_to_another_host_is_detected_by_the_certificate(tmp_path: Path) -> None:
    trusted, context = certificate(tmp_path, "other.test")
    with tunnelled(ok(), context) as (proxy, up):
        kind, message = tls_client(proxy, trusted).refused(request("https://upstream.test/"))
        assert (kind, up.requests) == ("unavailable", [])
    assert "certificate" in message


def test_a_proxy_that_answers_in_the_upstreams_place_is_found_out_by_tls(tmp_path: Path) -> None:
    trusted, _ = certificate(tmp_path, "upstream.test")

    def pretend(connection: socket.socket) -> None:
        connection.sendall(ESTABLISHED)
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with upstream(pretend) as proxy:
        assert tls_client(proxy, trusted).refused(request("https://upstream.test/"))[0] == "unavailable"


@pytest.mark.parametrize("url", ["http://other.test/", "http://127.0.0.1/", "http://localhost/", "http://[::1]/"])
def test_only_allowed_domains_are_asked_of_the_proxy(url: str) -> None:
    with upstream(ok()) as proxy:
        assert Client(proxied_plan(proxy.address)).refused(request(url))[0] in ("denied", "invalid-input")
        assert proxy.requests == []


@pytest.mark.parametrize("method", ["DELETE", "CONNECT"])
def test_only_allowed_methods_are_used_through_the_proxy(method: str) -> None:
    with upstream(ok()) as proxy:
        assert Client(proxied_plan(proxy.address)).refused(request(method=method))[0] == "denied"
        assert proxy.requests == []


def test_where_a_name_leads_in_dev_mode_opens_neither_a_port_nor_a_secret_without_tls() -> None:
    use = SecretUse("token", way=AsHeader("Authorization"), domains=("upstream.test",))
    with upstream(ok()) as elsewhere, upstream(ok()) as proxy:
        plan = proxied_plan(proxy.address, address=elsewhere.address)
        kind, message = Client(plan).refused(request("http://upstream.test:22/"))
        assert (kind, "a port of its own" in message) == ("denied", True)
        client = Client(msgspec.structs.replace(plan, secrets=(use,)), secrets={"token": SECRET})
        assert client.refused(request()) == ("denied", "a secret is never sent without TLS")
        assert (proxy.requests, elsewhere.requests) == ([], [])


def test_where_a_name_leads_in_dev_mode_is_not_where_the_proxy_is_asked_to_go() -> None:
    with upstream(ok(b"wrong")) as elsewhere, tunnelled(ok(b"right")) as (proxy, _):
        plan = proxied_plan(proxy.address, address=elsewhere.address)
        assert Client(plan).send(request()).body == b"right"
        assert elsewhere.requests == []


def test_an_action_that_must_use_a_proxy_never_goes_out_directly() -> None:
    with upstream(ok()) as up, upstream(saying(b"HTTP/1.1 503 no\r\n\r\n")) as proxy:
        for address in (None, proxy.address):
            plan = proxied_plan(address, address=up.address)
            assert Client(plan, names=Names(["8.8.8.8"])).refused(request())[0] == "unavailable"
        assert up.requests == []


def test_an_action_that_goes_out_directly_never_uses_the_proxy() -> None:
    with upstream(ok()) as up, upstream(ok()) as proxy:
        plan = http_plan(address=up.address)
        egress = msgspec.structs.replace(plan.egress, proxy_url=f"http://{proxy.address}")
        assert Client(msgspec.structs.replace(plan, egress=egress)).send(request()).status == 200
        assert proxy.requests == []


# ------------------------------------------------------------------------------------------------ finding the proxy


def test_a_proxy_that_has_a_name_is_resolved_and_may_be_private() -> None:
    with tunnelled(ok(b"through")) as (proxy, _):
        names = Names(["127.0.0.1"])
        port = proxy.address.rpartition(":")[2]
        assert Client(proxied_plan(f"proxy.internal:{port}"), names=names).send(request()).body == b"through"
    assert names.questions == ["proxy.internal"]


@pytest.mark.parametrize(("kind", "said"), [
    ("unavailable", "could not be resolved"), ("timeout", "could not be resolved in time"),
])  # fmt: skip
def test_a_proxys_name_that_can_not_be_resolved_fails_the_request(kind: str, said: str) -> None:
    class Failing(Resolver):
        def resolve(self, host: str, seconds: float) -> list[str]:
            raise HostError(kind, f"the host's name {said}", retryable=True)

    client = Client(proxied_plan("proxy.internal:3128"), names=Failing())
    assert client.refused(request()) == (kind, f"the egress proxy's name {said}")


def test_a_proxy_may_have_an_address_of_either_family(monkeypatch: pytest.MonkeyPatch) -> None:
    dialled: list[tuple[str, int]] = []

    def refuse(_: socket.socket, address: tuple[str, int]) -> None:
        dialled.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for proxy in ("10.0.0.1:3128", "[fd00::1]:3128"):
        assert Client(proxied_plan(proxy)).refused(request())[1] == "the egress proxy can't be reached"
    assert list(dict.fromkeys(dialled)) == [("10.0.0.1", 3128), ("fd00::1", 3128)]


def test_an_address_of_a_family_that_this_host_does_not_know_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "AF_INET6", 12345)  # the kernel refuses it, as it does IPv6 where that is turned off
    with tunnelled(ok(b"through")) as (proxy, _):
        port = proxy.address.rpartition(":")[2]
        client = Client(proxied_plan(f"proxy.internal:{port}"), names=Names(["::1", "127.0.0.1"]))
        assert client.send(request()).body == b"through"
        assert Client(proxied_plan(f"[::1]:{port}")).refused(request()) == (
            "unavailable", "the egress proxy can't be reached"
        )  # fmt: skip


def test_a_proxy_that_is_not_there_is_unavailable_and_worth_another_try() -> None:
    with socket.socket() as taken:  # bound: no other program can take it meanwhile
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(HostError) as caught:
            Client(proxied_plan(address)).send(request())
    failure = caught.value.failure
    assert (failure.kind, failure.message) == ("unavailable", "the egress proxy can't be reached")
    assert failure.retryable


# ------------------------------------------------------------------ what the proxy is shown


def shown_plan(proxy: str, **changes: Any) -> Plan:
    """A plan whose proxy is shown the secret `way`."""
    plan = proxied_plan(proxy, **changes)
    shown = msgspec.structs.replace(plan.egress, proxy_secret="way")
    return msgspec.structs.replace(plan, egress=shown, secrets=(*plan.secrets, SecretUse("way")))


def test_the_proxy_is_shown_its_credentials_and_the_upstream_is_not() -> None:
    with tunnelled(ok()) as (proxy, up):
        assert Client(shown_plan(proxy.address), secrets={"way": "gw:a:b ü"}).send(request()).status == 200
    shown = base64.b64encode("gw:a:b ü".encode())
    assert proxy.requests[0].endswith(b"\r\nproxy-authorization: Basic " + shown + b"\r\n\r\n")
    assert b"proxy-authorization" not in up.requests[0]
    assert shown not in up.requests[0]


def test_a_proxy_that_refuses_credentials_is_distinguished_from_one_that_wants_some() -> None:
    with upstream(saying(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")) as proxy:
        told = Client(shown_plan(proxy.address), secrets={"way": "gw:wrong"}).refused(request())
    assert told == ("denied", "the egress proxy does not take the credentials")


@pytest.mark.parametrize(
    ("secrets", "kind"), [({}, "unavailable"), ({"way": "no colon"}, "internal"), ({"way": "a:b\r\nx: y"}, "internal")]
)
def test_credentials_that_can_not_be_sent_safely_are_never_sent(secrets: dict[str, str], kind: str) -> None:
    with tunnelled(ok()) as (proxy, up):
        refusal, message = Client(shown_plan(proxy.address), secrets=secrets).refused(request())
    assert (refusal, proxy.requests, up.requests) == (kind, [], [])
    assert not any(value in message for value in secrets.values())


def test_the_proxys_credentials_are_no_header_of_a_request() -> None:
    with tunnelled(ok()) as (proxy, up):
        leaking = shown_plan(
            proxy.address, secrets=(SecretUse("way", way=AsHeader("x-key"), domains=("upstream.test",)),)
        )
        leaking = msgspec.structs.replace(leaking, secrets=leaking.secrets[:1])
        assert Client(leaking, secrets={"way": "gw:words"}).refused(request())[0] == "internal"
    assert up.requests == []
