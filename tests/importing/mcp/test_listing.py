"""Requests to a server over HTTP, and the bounds on its answers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from importing.mcp import listing, main
from importing.mcp.main import MISSING, McpImport
from importing.refusal import ImportRefused
from tests.support.bridge_process import bridge


@pytest.fixture(autouse=True)
def _without_bounds_on_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_bound_memory", lambda: None)
    monkeypatch.setattr("logging.disable", lambda: None)


@contextmanager
def server(result: dict[str, Any], discovered: dict[str, Any] | None = None) -> Iterator[tuple[str, list[str]]]:
    """A server over HTTP that gives these answers to tools/list and server/discover: its URL, and the Authorization of
    each request."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "id" not in message:
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            answer: dict[str, Any] = {"error": {"code": -32601, "message": "no"}}
            if message["method"] == "initialize":
                info = {"name": "http", "version": "1"}
                answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}}
            elif message["method"] == "tools/list":
                answer = {"result": result}
            elif message["method"] == "server/discover" and discovered is not None:
                answer = {"result": discovered}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/mcp", seen
        running.shutdown()


def test_tools_are_listed_over_http_with_the_token() -> None:
    with server({"tools": [{"name": "t", "inputSchema": {"type": "object", "default": None}}]}) as (url, seen):
        listed = listing.list_tools(url, None, "tok-1")
    assert [(one.name, one.members["inputSchema"]) for one in listed.tools] == [
        ("t", {"type": "object", "default": None})
    ]
    assert set(seen) == {"Bearer tok-1"}


def test_tools_are_listed_through_a_bridge(tmp_path: Path) -> None:
    with bridge(tmp_path) as running:
        assert "add" in [one.name for one in listing.list_tools(running.url, None, None).tools]


def test_a_tool_that_the_newest_revision_forbids_is_told_with_its_reason() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "x-mcp-header": "A"}}}
    tools = [{"name": "twice", "inputSchema": schema}, {"name": "t", "inputSchema": {"type": "object"}}]
    cached = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    discovered = cached | {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    with server(cached | {"tools": tools}, discovered) as (url, _):
        listed = listing.list_tools(url, None, None)
    assert listed.revision == "2026-07-28"
    assert [one.name for one in listed.tools] == ["t"]
    assert [(name, "only permitted on" in reason) for name, reason in listed.refused] == [("twice", True)]


def test_a_server_with_too_many_tools_is_refused() -> None:
    tools = [{"name": f"t{number}", "inputSchema": {"type": "object"}} for number in range(listing.MAX_TOOLS + 1)]
    with server({"tools": tools}) as (url, _), pytest.raises(ImportRefused, match="more than 1000 tools"):
        listing.list_tools(url, None, None)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ImportRefused, match=r"http://127\.0\.0\.1:9/mcp does not list its tools"):
        listing.list_tools("http://127.0.0.1:9/mcp", None, None)


def test_a_server_that_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SECONDS", 0.01)
    with server({"tools": []}) as (url, _), pytest.raises(ImportRefused, match="did not list its tools within"):
        listing.list_tools(url, None, None)


def test_without_the_package_the_command_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "find_spec", lambda _: None)
    with pytest.raises(ImportRefused) as refused:
        main.run(McpImport("http://mcp.internal/mcp", "out"))
    assert refused.value.sentence == MISSING
