"""Bytes that are no ordinary requests, sent to a running gateway: each gets its answer, and the gateway lives."""

from dataclasses import dataclass

import pytest

from tests.support.gateway import Bearer, Gateway, wait_for
from tests.support.own_gateway import own_gateway
from tests.support.raw_http import raw, request
from tests.support.readable import readable
from tests.support.replies import Reply
from tests.support.upstream import Upstream

EXECUTE = "/v1/actions/text_digest/execute"
MB = 1_048_576
LIMITS = """
[limits]
header_timeout_seconds = 0.7
body_timeout_seconds = 0.7
send_timeout_seconds = 0.7
"""


pytestmark = pytest.mark.usefixtures("unharmed")


hasty = own_gateway(LIMITS, is_spared=True)
"""A gateway with little patience, which must be the same process at the end as at the start."""


def is_alive(gate: Gateway) -> bool:
    with raw(gate.ready["base_url"]) as line:
        reply = line.ask(request("GET", "/healthz"))
    return reply is not None and reply.json == {"status": "ok"}


def refused(reply: Reply | None, status: int, code: str) -> None:
    assert reply is not None
    assert (reply.status, reply.json["error"]) == (status, code)
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers.get("connection") == "close"


@dataclass(frozen=True)
class Row:
    """Bytes, and the one answer they get before the connection is closed."""

    name: str
    data: bytes
    status: int = 400
    code: str = "bad_request"


def head(*lines: str, start: str = "POST /v1/leases HTTP/1.1", host: str = "Host: localhost") -> bytes:
    return "\r\n".join([start, *([host] if host else []), *lines, "", ""]).encode("latin-1")


SMUGGLED = b"GET /v1/actions HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked"

ROWS = (
    Row("two ways to tell where the body ends", head("Content-Length: 5", CHUNKED) + b"0\r\n\r\n" + SMUGGLED),
    Row("a chunk of overflowing size", head(CHUNKED) + b"fffffffffffffffff\r\n" + SMUGGLED),
    Row("a body of crumbs", head(CHUNKED) + b"1\r\n \r\n" * 40_000 + b"0\r\n\r\n"),
    Row("bare line feeds", head().replace(b"\r\n", b"\n")),
    Row("a folded header", head("X: a", " b")),
    Row("CONNECT", head(start="CONNECT gateway.test:80 HTTP/1.1")),
    Row("no Host", head(host="", start="GET /healthz HTTP/1.1")),
    Row("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    Row("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256))),
    Row("a head that never ends", b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 200_000, 431, "headers_too_large"),
    Row("a line that never ends", b"GET /" + b"a" * 4_000_000, 431, "headers_too_large"),
    Row("a body of twelve digits", head("Content-Length: 999999999999"), 413, "body_too_large"),
    Row("a chunk too large", head(CHUNKED) + b"ffffffff\r\n" + b"x" * 100, 413, "body_too_large"),
    Row("a body too large, on hold", head("Content-Length: 2000000", "Expect: 100-continue"), 413, "body_too_large"),
)  # fmt: skip
"""A row of each kind: `tests/frontend/http/` has all of them."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_no_request_gets_one_answer_and_the_connection_ends(gate: Gateway, row: Row) -> None:
    with raw(gate.ready["base_url"]) as line:
        line.send(row.data)
        replies = line.replies()
    assert len(replies) == 1, replies
    refused(replies[0], row.status, row.code)
    assert replies[0].headers["x-trace-id"]
    assert is_alive(gate)


@pytest.mark.parametrize("socket_name", ["client_socket", "admin_socket"])
def test_the_unix_sockets_are_as_strict(gate: Gateway, socket_name: str) -> None:
    for row in ROWS:
        with raw(gate.ready[socket_name]) as line:
            line.send(row.data)
            first = line.reply()
        assert first is not None, row.name
        # POST /v1/leases is not the admin socket's, so its body is never looked at there.
        assert first.status == row.status or (first.status == 404 and socket_name == "admin_socket"), row.name
        assert first.json["error"]


# ------------------------------------------------------------------------------------------------ what is served


def test_an_absolute_target_is_served_like_its_path(gate: Gateway, agent: Bearer) -> None:
    with raw(gate.ready["base_url"]) as line:
        for target in ("http://gateway.test/healthz", "HTTP://other.test:99/healthz", "https://x/healthz?y"):
            reply = line.ask(head(start=f"GET {target} HTTP/1.1"))
            assert reply is not None
            assert reply.json == {"status": "ok"}
        headers = agent.headers("POST", EXECUTE)
        data = request("POST", f"http://evil.test{EXECUTE}", headers, b'{"text":"x"}')
        reply = line.ask(data, "POST")
        assert reply is not None
        assert reply.status == 200, reply.body


def test_a_client_that_leaves_in_the_middle_of_its_request_is_nothing(gate: Gateway, agent: Bearer) -> None:
    whole = request("POST", EXECUTE, agent.headers("POST", EXECUTE), b'{"text":"' + b"x" * 5000 + b'"}')
    before = len(gate.events(session_id=agent.session_id))
    for cut in (1, 40, whole.index(b"\r\n\r\n") + 2):
        with raw(gate.ready["base_url"]) as line:
            line.send(whole[:cut])
            line.half_close()
            reply = line.reply("POST")
            assert reply is None or reply.status == 400
    assert len(gate.events(session_id=agent.session_id)) == before
    with raw(gate.ready["base_url"]) as line:
        line.send(whole[:-2000])
        line.half_close()
        refused(line.reply("POST"), 400, "bad_request")
    wait_for(lambda: len(gate.events(session_id=agent.session_id)) == before + 1, "the event of the half request")
    assert is_alive(gate)


def test_a_call_whose_client_has_gone_is_finished_with_evidence(gate: Gateway, up: Upstream) -> None:
    agent, end = gate.agent(max_calls=5), up.held("gone")
    path = "/v1/actions/http_fetch/execute"
    with raw(gate.ready["base_url"]) as line:
        line.send(request("POST", path, agent.headers("POST", path), b'{"path":"wait/gone"}'))
        wait_for(lambda: any("wait/gone" in seen.path for seen in up.seen), "the call at the upstream")
    end.set()
    event = wait_for(lambda: gate.events(session_id=agent.session_id, event_type="ActionCall"), "its event")[0]
    assert event["decision"] == "allow"
    assert event["budgets_after"] == {"calls_remaining": 4}
    receipt = agent.get(f"/v1/receipts/{event['receipt_id']}").json()
    assert receipt["normalized_result"]["kind"] == "success"
    assert gate.operator().get("/v1/admin/status").json()["unresolved_intents"] == 0


# ------------------------------------------------------------------------------------------------ slow clients


def test_a_body_that_never_comes_is_408_and_costs_no_budget(hasty: Gateway) -> None:
    agent = hasty.agent(max_calls=1)
    with raw(hasty.ready["base_url"]) as line:
        line.send(request("POST", EXECUTE, agent.headers("POST", EXECUTE) | {"Content-Length": "100"}))
        refused(line.reply("POST"), 408, "request_timeout")
    assert hasty.events(session_id=agent.session_id)[0]["error_code"] == "request_timeout"
    # So little patience may be too little for this client, too, if it stands still.
    wait_for(lambda: agent.execute("text_digest", {"text": "now"}).status_code == 200, "the call that was not used up")


def test_slow_clients_hold_up_nobody_else(hasty: Gateway) -> None:
    agent = hasty.agent()
    with raw(hasty.ready["base_url"]) as first, raw(hasty.ready["base_url"]) as second:
        first.send(b"GET /heal")
        second.send(head("Content-Length: 1000") + b"{")
        wait_for(lambda: agent.execute("text_digest", {"text": "meanwhile"}).status_code == 200, "a call meanwhile")
        refused(first.reply(), 408, "request_timeout")


# ------------------------------------------------------------------------------------------------ large bodies


def test_a_body_that_is_announced_too_large_is_413_before_a_byte_of_it(gate: Gateway, agent: Bearer) -> None:
    with raw(gate.ready["base_url"]) as line:
        headers = agent.headers("POST", EXECUTE) | {"Content-Length": str(MB + 1), "Content-Type": "application/json"}
        # Not a byte of it is sent: a gateway that waited for one would answer 408.
        refused(line.ask(request("POST", EXECUTE, headers), "POST"), 413, "body_too_large")
    assert gate.events(session_id=agent.session_id)[0]["error_code"] == "body_too_large"


def test_a_body_that_grows_too_large_is_413_while_it_is_read(gate: Gateway, agent: Bearer) -> None:
    front = gate.child("front")
    before = front.memory_info().rss
    headers = agent.headers("POST", EXECUTE) | {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    with raw(gate.ready["base_url"]) as line:
        line.send(request("POST", EXECUTE, headers))
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        for _ in range(200):
            line.send(chunk)
            if readable(line.sock, 0):
                break
        refused(line.reply("POST"), 413, "body_too_large")
    assert front.memory_info().rss - before < 8 * MB


def test_without_credentials_nobody_makes_the_gateway_read_a_body(gate: Gateway) -> None:
    for more in ({}, {"Expect": "100-continue"}):
        with raw(gate.ready["base_url"]) as line:
            reply = line.ask(request("POST", EXECUTE, {"Content-Length": "1000000"} | more), "POST")
            refused(reply, 401, "missing_auth_header")
