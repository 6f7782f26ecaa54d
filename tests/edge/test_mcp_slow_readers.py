"""Clients of `/mcp` that take their answers slowly or not at all: who is cut, and who is not."""

import json
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from edge.application import EdgeApplication
from edge.connection import CONNECTION, EdgeConnection
from edge.connections import EdgeConnections
from edge.gateway import ClientSocket
from edge.held import MAX_HELD_OF_ADDRESS, WholeAnswer
from edge.places import GatewayPlaces
from ipc.configuration.edge_settings import EdgeLimitSettings
from tests.support.certificates import made_certificate
from tests.support.edge_process import edge, edge_config
from tests.support.edge_wire import Frames, connected
from tests.support.gateway import Gateway, wait_for
from tests.support.mcp_over_http import MCP, access_token, call_of, tool_called

TLS = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
Message = MutableMapping[str, Any]


def test_a_client_that_takes_no_byte_of_its_answer_is_cut_and_its_caller_is_served_elsewhere(
    gate: Gateway, tmp_path: Path
) -> None:
    roots, shown = made_certificate(tmp_path, "127.0.0.1"), access_token(jti="slow")
    request = call_of("text_digest", {"text": "of a slow reader"})
    names = {":method": "POST", ":path": "/mcp", ":scheme": "https", ":authority": "gate.example"}
    headers = names | request["headers"] | {"Authorization": f"Bearer {shown}"}
    config = edge_config(tmp_path, gate.ready["client_socket"], f"{TLS}{MCP}[limits]\nsend_seconds = 1\n")
    with edge(config, roots) as serving, connected(serving, "h2") as sock:
        frames = Frames(sock)
        frames.h2.update_settings({4: 0})  # no byte of a body may come
        frames.h2.send_headers(1, [(name.lower(), value) for name, value in headers.items()])
        frames.h2.send_data(1, json.dumps(request["json"]).encode(), end_stream=True)
        frames.flush()
        assert frames.outcome() == 200
        wait_for(lambda: any("reads too slowly" in line["message"] for line in serving.lines()), "a line about it")
        assert sock.recv(65536) == b""
        (call,) = tool_called(serving, shown, "gateway_recent_calls", {})["calls"]
    assert call["state"] == "executed"


class _Stream:
    """An endpoint of the edge's own that sends a part, and has no more to send for a while."""

    def __init__(self) -> None:
        self.is_quiet = trio.Event()

    def serves(self, path: bytes) -> bool:
        return path == b"/mcp"

    async def answer(self, scope: Message, body: bytes, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b": progress", "more_body": True})
        self.is_quiet.set()
        await trio.sleep(60)
        await send({"type": "http.response.body", "body": b"the end", "more_body": False})


async def test_a_stream_without_news_is_not_cut_for_answers_that_need_its_addresss_memory(
    autojump_clock: MockClock,
) -> None:
    limits, stream, sent = EdgeLimitSettings(), _Stream(), []
    connections = EdgeConnections(limits)
    connection = EdgeConnection(trio.testing.memory_stream_pair()[0], "a")  # type: ignore[arg-type]
    application = EdgeApplication(ClientSocket("", GatewayPlaces(1)), connections, limits, stream)
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "headers": [],
        "state": {CONNECTION: connection},
    }  # fmt: skip

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message.get("body"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(application, scope, receive, send)
        await stream.is_quiet.wait()
        await trio.sleep(5)
        other = WholeAnswer(connections.answers, "a", pytest.fail)
        await other.keep(b"x" * MAX_HELD_OF_ADDRESS)
        other.release()
    assert sent == [None, b": progress", b"the end"]
