"""A real `gateway mcp-bridge` for tests, and a client that speaks to it by hand."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from tests.support.gateway import ANSWER_SECONDS
from tests.support.serving_process import ServingProcess, serving_process

SERVER = (sys.executable, str(Path(__file__).with_name("stdio_mcp_server.py")))
AS_USER = ("--user", "root") if os.geteuid() == 0 else ()
"""The interpreter of the tests may be one that root alone can start."""
_VERSION = "2025-11-25"


@dataclass
class McpSession:
    """One session by hand. `id` empty: none is open."""

    http: httpx.Client
    id: str = ""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def post(self, message: Any, **headers: str) -> httpx.Response:
        """Send one message; `headers` (underscores for dashes) come on top."""
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.id:
            sent |= {"Mcp-Session-Id": self.id, "MCP-Protocol-Version": _VERSION}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.http.post("/mcp", content=content, headers=sent)

    def ask(self, method: str, params: Any = None, **headers: str) -> httpx.Response:
        """Send a request."""
        message = {"jsonrpc": "2.0", "id": next(self.numbers), "method": method, "params": params or {}}
        return self.post(message, **headers)

    def open(self) -> "McpSession":
        """Begin: initialize, and the notification that it is done."""
        capabilities = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        answer = self.ask("initialize", capabilities)
        assert answer.status_code == 200, answer.text
        self.id = answer.headers["mcp-session-id"]
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
        return self

    def call(self, tool: str, **arguments: Any) -> httpx.Response:
        """Call a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def value(self, tool: str, **arguments: Any) -> Any:
        """The answer of a tool of the test's own server."""
        answer = self.call(tool, **arguments)
        assert answer.status_code == 200, answer.text
        return json.loads(answer.json()["result"]["content"][0]["text"])


@dataclass
class Bridge(ServingProcess):
    """A bridge that serves."""

    http: httpx.Client

    @property
    def url(self) -> str:
        """Where hosts reach it."""
        return self.address

    def session(self) -> McpSession:
        """A session that is not open yet."""
        return McpSession(self.http)

    def reasons(self) -> list[str]:
        """Why sessions ended."""
        return [line["reason"] for line in self.lines() if line["message"] == "session ended"]


@contextmanager
def bridge(
    folder: Path, *arguments: str, command: Sequence[str] = SERVER, user: Sequence[str] = AS_USER
) -> Iterator[Bridge]:
    """Serve until the block ends."""
    words = ["mcp-bridge", "--listen", "127.0.0.1:0", *user, *arguments, "--", *command]
    with (
        serving_process(folder / "bridge.log", words, "url") as one,
        httpx.Client(base_url=one.address.removesuffix("/mcp"), timeout=ANSWER_SECONDS) as http,
    ):
        yield Bridge(one.process, one.address, one.log, http)
