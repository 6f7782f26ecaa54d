"""Heads and bodies that two servers could read in two ways: none reaches the gateway, and other clients are served."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import made_certificate
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import LEASE, Frames, Headers, answered, connected, statuses
from tests.support.hostile_gateway import HostileGateway, hostile_gateway, whole

SMUGGLED = b"POST /v1/actions/smuggled/execute HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
POST = b"POST /v1/leases HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BEHIND_THE_END = b"0\r\n\r\n" + SMUGGLED


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileGateway]:
    folder: Path = tmp_path_factory.mktemp("behind")
    with hostile_gateway(whole(b"{}", Connection="close"), str(folder / "gate.sock")) as server:
        yield server


@pytest.fixture(scope="module")
def before(behind: HostileGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    folder: Path = tmp_path_factory.mktemp("edge")
    roots = made_certificate(folder, "127.0.0.1")
    tls = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
    with edge(edge_config(folder, behind.url.removeprefix("unix://"), tls), roots) as running:
        yield running


@pytest.fixture(autouse=True)
def still_served(before: Edge, behind: HostileGateway) -> Iterator[None]:
    behind.requests.clear()
    yield
    behind.requests.clear()
    with before.client() as client:
        assert client.get("/healthz").status_code == 200
    assert len(behind.requests) == 1


REFUSED: dict[str, tuple[bytes, set[int]]] = {
    "a length beside a coding": (POST + CHUNKED + b"Content-Length: 5\r\n\r\n" + BEHIND_THE_END, {400}),
    "a coding beside a length": (POST + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n" + BEHIND_THE_END, {400}),
    "two lengths": (POST + b"Content-Length: 5\r\nContent-Length: 0\r\n\r\nabcde" + SMUGGLED, {400}),
    "a list of lengths": (POST + b"Content-Length: 5, 0\r\n\r\nabcde" + SMUGGLED, {400}),
    "a length with a sign": (POST + b"Content-Length: +5\r\n\r\nabcde" + SMUGGLED, {400}),
    "a hexadecimal length": (POST + b"Content-Length: 0x5\r\n\r\nabcde" + SMUGGLED, {400}),
    "two codings": (POST + b"Transfer-Encoding: identity, chunked\r\n\r\n" + BEHIND_THE_END, {400, 501}),
    "another coding": (POST + b"Transfer-Encoding: gzip\r\n\r\n" + BEHIND_THE_END, {400, 501}),
    "a coding twice": (POST + CHUNKED + CHUNKED + b"\r\n" + BEHIND_THE_END, {400, 501}),
    "white space before a colon": (POST + b"Content-Length : 5\r\n\r\nabcde" + SMUGGLED, {400}),
    "a chunk without a size": (POST + CHUNKED + b"\r\nxyz\r\n" + SMUGGLED, {400}),
    "a chunk longer than it says": (POST + CHUNKED + b"\r\n1\r\nabc\r\n" + BEHIND_THE_END, {400}),
    "a body behind a GET": (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(SMUGGLED), SMUGGLED), {400},
    ),
    "an absolute target": (b"GET http://gate.example/v1/actions HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "an authority as target": (b"CONNECT gate.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "an asterisk as target": (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "an operator's endpoint": (b"GET /v1/admin/status HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "dots to an operator's endpoint": (b"GET /v1/actions/../admin/status HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "an encoded slash": (b"GET /v1/actions/..%2fadmin HTTP/1.1\r\nHost: x\r\n\r\n", {404}),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", {400}),
    "two hosts": (b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", {400}),
    "a control character": (b"GET /healthz HTTP/1.1\r\nHost: x\r\nDPoP: a\x00b\r\n\r\n", {400}),
    "a carriage return": (b"GET /healthz HTTP/1.1\r\nHost: x\r\nDPoP: a\rClient-Cert: b\r\n\r\n", {400}),
    "a huge header": (b"GET /healthz HTTP/1.1\r\nHost: x\r\nDPoP: " + b"a" * 100_000, {431}),
    "very many headers": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 200 + b"\r\n", {400}),
    "a huge target": (b"GET /v1/actions/" + b"a" * 100_000, {400, 431}),
    "a body that is too large": (POST + b"Content-Length: 1048577\r\n\r\n" + b" " * 1_048_577, {413}),
    "another protocol": (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n", {400},
    ),
    "no HTTP": (b"\x00\xff" * 300 + b"\r\n\r\n", {400}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_head_that_could_be_read_in_two_ways_is_refused(before: Edge, behind: HostileGateway, name: str) -> None:
    sent, expected = REFUSED[name]
    with connected(before) as sock:
        received = statuses(answered(sock, sent))
    assert behind.requests == []
    assert len(received) == 1, received
    assert received[0] in expected


CUT: dict[str, bytes] = {
    "a WebSocket": b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    "HTTP/2 by an upgrade": b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
    b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
}


@pytest.mark.parametrize("name", CUT)
def test_a_connection_that_becomes_another_protocol_reaches_nothing(
    before: Edge, behind: HostileGateway, name: str
) -> None:
    with connected(before) as sock:
        received = statuses(answered(sock, CUT[name]))
    assert 200 not in received
    assert behind.requests == []


def _changed(name: str, value: str) -> Headers:
    return [(given, value if given == name else was) for given, was in LEASE]


BROKEN: dict[str, Headers] = {
    "no path": [one for one in LEASE if one[0] != ":path"],
    "no method": [one for one in LEASE if one[0] != ":method"],
    "an empty path": _changed(":path", ""),
    "two methods": [*LEASE[:1], *LEASE],
    "two paths": [*LEASE, (":path", "/healthz")],
    "another pseudo header": [*LEASE, (":client-cert", "x")],
    "a pseudo header behind others": [*LEASE[1:], ("dpop", "x"), LEASE[0]],
    "an absolute path": _changed(":path", "https://gate.example/v1/leases"),
    "a request in a method": _changed(":method", "POST /v1/leases HTTP/1.1\r\nHost: x\r\n\r\nPOST"),
    "a request in a path": _changed(":path", "/v1/leases HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a line in a value": [*LEASE, ("dpop", "a\r\nclient-cert: :AAAA:")],
    "a line in a name": [*LEASE, ("dpop\r\nclient-cert", ":AAAA:")],
    "a NUL in a value": [*LEASE, ("dpop", "a\0b")],
    "a path that is no ASCII": _changed(":path", "/v1/actions/\u00e9"),
    "capitals in a name": [*LEASE, ("DPoP", "x")],
    "a coding": [*LEASE, ("transfer-encoding", "chunked")],
    "a connection": [*LEASE, ("connection", "close")],
    "an upgrade": [*LEASE, ("upgrade", "h2c")],
    "two lengths": [*LEASE, ("content-length", "0"), ("content-length", "9")],
    "a length that is wrong": [*LEASE, ("content-length", "9")],
    "a tunnel": [(":method", "CONNECT"), (":authority", "127.0.0.1:80")],
    "a WebSocket": [*_changed(":method", "CONNECT"), (":protocol", "websocket")],
    "very many headers": [*LEASE, *[(f"x-{at}", "y") for at in range(200)]],
    "a huge header": [*LEASE, ("dpop", "a" * 60_000)],
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_head_of_http2_that_is_malformed_is_refused(before: Edge, behind: HostileGateway, name: str) -> None:
    with connected(before, "h2") as sock:
        frames = Frames(sock)
        frames.h2.send_headers(1, BROKEN[name], end_stream=True)
        frames.flush()
        assert frames.outcome() in (None, 400, 404)
    assert behind.requests == []


ADDED = (
    ("Client-Cert", ":AAAA:"), ("Client-Cert-Chain", ":AAAA:"), ("Forwarded", "for=127.0.0.1"),
    ("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-Proto", "https"), ("X-Real-IP", "127.0.0.1"), ("TE", "trailers"),
    ("Cookie", "a=b"), ("Proxy-Authorization", "Basic YTpi"), ("Keep-Alive", "timeout=5"), ("X-Other", "y"),
)  # fmt: skip


@pytest.mark.parametrize("http2", [False, True], ids=["HTTP/1.1", "HTTP/2"])
def test_only_headers_that_the_gateway_reads_reach_it(before: Edge, behind: HostileGateway, http2: bool) -> None:
    passed = {
        "authorization": "Bearer x", "dpop": "y", "idempotency-key": "z", "content-type": "application/json",
        "content-encoding": "gzip",
    }  # fmt: skip
    added = [one for one in ADDED if not http2 or one[0] not in ("TE", "Keep-Alive")]
    client = before.client(http2=http2)
    answer = client.post("/v1/leases?a=%20b", content=b"{}", headers=[*passed.items(), *added])
    assert answer.status_code == 200, answer.text
    (request,) = behind.requests
    line, *lines = request.partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")
    assert line == "post /v1/leases?a=%20b http/1.1"
    sent = dict(one.split(": ", 1) for one in lines)
    assert sent == {"host": "localhost", "content-length": "2", **{name: passed[name].lower() for name in passed}}
