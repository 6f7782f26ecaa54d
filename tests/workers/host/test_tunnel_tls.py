"""TLS to the egress proxy: the proxy's certificate, TLS to the upstream inside the tunnel, and truncated
connections."""

import base64
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.plan import SecretUse
from tests.support.http_host import Client, Names, request
from tests.support.worker_proxy import ESTABLISHED, proxied_plan, through_tls
from tests.support.worker_upstream import Upstream, certificate, ok, saying, upstream
from workers.host.connection import make_tls

PROXY, HOST = "proxy.test", "upstream.test"
LONG = b"x" * 300_000


def trusting(*files: Path) -> ssl.SSLContext:
    context = make_tls()
    for file in files:
        context.load_verify_locations(file)
    return context


@contextmanager
def both(
    folder: Path, body: bytes = b"{}", upstreams: ssl.SSLContext | None = None, name: str = PROXY
) -> Iterator[tuple[Upstream, Upstream, Path]]:
    """(the proxy, the upstream behind it, the file with the proxy's certificate)."""
    trusted, context = certificate(folder, name)
    with upstream(ok(body), upstreams) as up, upstream(through_tls(up.address), context) as proxy:
        yield proxy, up, trusted


def client(proxy: Upstream, trusted: ssl.SSLContext, **more: Any) -> Client:
    """Through the proxy by its name, which leads to loopback. `more` is the client's."""
    port = proxy.address.rpartition(":")[2]
    plan = proxied_plan(f"{PROXY}:{port}", scheme="https")
    shown = msgspec.structs.replace(plan.egress, proxy_secret="way")
    plan = msgspec.structs.replace(plan, egress=shown, secrets=(SecretUse("way"),))
    return Client(plan, names=Names(["127.0.0.1"]), proxy_tls=trusted, secrets={"way": "gw:words"}, **more)


def test_the_proxy_is_verified_by_its_authorities_and_shown_its_credentials_inside(tmp_path: Path) -> None:
    with both(tmp_path, LONG) as (proxy, up, trusted):
        answer = client(proxy, make_tls(str(trusted))).send(request(method="POST", body="y" * 60_000))
    assert (answer.status, answer.body) == (200, LONG)
    assert b"proxy-authorization: Basic " + base64.b64encode(b"gw:words") in proxy.requests[0]
    assert up.requests[0].endswith(b"y" * 60_000)


def test_tls_for_the_upstream_goes_inside_of_it_and_is_verified_for_itself(tmp_path: Path) -> None:
    inner, context = certificate(tmp_path, HOST)
    with both(tmp_path, LONG, context) as (proxy, up, trusted):
        one = client(proxy, make_tls(str(trusted)), tls=trusting(inner))
        answer = one.send(request(f"https://{HOST}/", method="POST", body="y" * 60_000))
        assert (answer.status, answer.body) == (200, LONG)
        assert up.requests[0].endswith(b"y" * 60_000)
        other = client(proxy, make_tls(str(trusted)))
        told = other.refused(request(f"https://{HOST}/"))
    assert told == ("unavailable", "the upstream's certificate is self-signed and not trusted")
    assert b"yyy" not in b"".join(proxy.requests)


@pytest.mark.parametrize("name", [PROXY, "other.test"], ids=["by another authority", "for another name"])
def test_a_proxy_that_is_another_is_shown_nothing(tmp_path: Path, name: str) -> None:
    with both(tmp_path, name=name) as (proxy, up, trusted):
        authorities = make_tls() if name == PROXY else make_tls(str(trusted))
        told = client(proxy, authorities).refused(request())
    wrong = "is self-signed and not trusted" if name == PROXY else "is not valid for its name"
    assert told == ("unavailable", f"the egress proxy's certificate {wrong}")
    assert (proxy.requests, up.requests) == ([], [])


@pytest.mark.large
def test_a_proxy_that_speaks_no_tls_is_shown_nothing() -> None:
    with upstream(saying(ESTABLISHED)) as proxy:
        kind, message = client(proxy, make_tls(), seconds=1).refused(request())
        assert kind in ("unavailable", "timeout")
        assert "the egress proxy" in message
    assert not any(b"CONNECT" in one or b"gw" in one for one in proxy.requests)


def test_an_upstream_whose_tls_is_cut_inside_the_tunnel_has_not_answered(tmp_path: Path) -> None:
    """The end of the outer layer is not the end of a body that goes to the end of the inner one."""
    inner, context = certificate(tmp_path, HOST)

    def cuts(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf")
        connection.shutdown(socket.SHUT_RDWR)

    trusted, outer = certificate(tmp_path, PROXY)
    with upstream(cuts, context) as up, upstream(through_tls(up.address), outer) as proxy:
        told = client(proxy, make_tls(str(trusted)), tls=trusting(inner)).refused(request(f"https://{HOST}/"))
    assert told[0] == "unavailable"


@pytest.mark.large
def test_a_tunnel_in_which_nothing_comes_ends_with_the_time_of_the_call(tmp_path: Path) -> None:
    trusted, outer = certificate(tmp_path, PROXY)

    def says_nothing(connection: socket.socket) -> None:
        connection.sendall(ESTABLISHED)
        connection.recv(1 << 16)
        connection.recv(1 << 16)

    with upstream(says_nothing, outer) as proxy:
        told = client(proxy, make_tls(str(trusted)), seconds=2).refused(request(f"https://{HOST}/"))
    assert told == ("timeout", "the upstream did not answer in time")


def test_a_file_without_certificates_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("none")
    with pytest.raises(ssl.SSLError):
        make_tls(str(tmp_path / "none.pem"))
