"""The upstream of the tested actions: a server on loopback that answers as each test says, with and without TLS."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from frontend.action_tests.form import PlayedUpstream

_TLS_HANDSHAKE: Final = b"\x16"
_LOOPBACK: Final = "127.0.0.1"
HANDSHAKE_SECONDS: Final = 30.0
_OK: Final = 200
TOKEN: Final = PlayedUpstream(
    body={"access_token": "placeholder-of-a-token", "token_type": "Bearer", "expires_in": 3600}
)  # fmt: skip
"""The answer of each token server."""


class _PlayedAnswer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = HANDSHAKE_SECONDS

    def setup(self) -> None:
        """Agree on TLS where the client begins with it."""
        self.request.settimeout(HANDSHAKE_SECONDS)
        if self.request.recv(1, socket.MSG_PEEK) == _TLS_HANDSHAKE:
            self.request = self._server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    @property
    def _server(self) -> "_PlayedServer":
        assert isinstance(self.server, _PlayedServer)
        return self.server

    def _answer(self) -> None:
        sent = self.rfile.read(int(self.headers.get("content-length") or 0))
        asked = (self.headers.get("host") or "") + self.path
        played = TOKEN if asked in self._server.token_places else self._server.played
        self.close_connection = True
        if played.error:
            self._server.released.wait()
            return
        if played.tool is not None:
            played = _of_tool(played, played.tool, sent)
        body, kind = _encoded(played.body)
        self.send_response(played.status)
        named = {name.lower() for name in played.headers}
        more = {"Content-Type": kind} if kind and "content-type" not in named else {}
        has_body = played.status not in (204, 304)
        more |= {"Content-Length": str(len(body)), "Connection": "close"} if has_body else {"Connection": "close"}
        for name, value in (played.headers | more).items():
            self.send_header(name, value)
        self.end_headers()
        if has_body and self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815 - http.server's names

    def log_message(self, *_: Any) -> None:
        """The report tells of what matters."""


class _PlayedServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, tls: ssl.SSLContext, token_places: frozenset[str]) -> None:
        super().__init__((_LOOPBACK, port), _PlayedAnswer)
        self.tls = tls
        self.token_places = token_places
        """Host, path and query of each token server."""
        self.played = PlayedUpstream()
        self.released = threading.Event()

    def handle_error(self, *_: Any) -> None:
        """A client that breaks off is no fault: the call tells of it."""


class UpstreamServer:
    """The server; it lives as long as the block that it is entered for."""

    def __init__(self, tls: ssl.SSLContext, token_urls: frozenset[str]) -> None:
        """Requests to `token_urls` are answered with a token, whatever a test plays."""
        self._tls = tls
        self._token_places = frozenset(url.partition("://")[2] for url in token_urls)
        self._server = _PlayedServer(0, tls, self._token_places)
        self._thread = self._serve()

    @property
    def address(self) -> str:
        """host:port, the same for the whole run."""
        return f"{_LOOPBACK}:{self._server.server_address[1]}"

    @contextmanager
    def playing(self, played: PlayedUpstream) -> Iterator[None]:
        """Answer so as long as the block lasts."""
        if played.error == "refused":
            port = self._server.server_address[1]
            self.close()
            try:
                yield
            finally:
                self._server = _PlayedServer(port, self._tls, self._token_places)
                self._thread = self._serve()
            return
        self._server.played = played
        self._server.released.clear()
        try:
            yield
        finally:
            self._server.released.set()

    def close(self) -> None:
        """End the server."""
        self._server.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _serve(self) -> threading.Thread:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        return thread


def _of_tool(played: PlayedUpstream, tool: dict[str, Any], sent: bytes) -> PlayedUpstream:
    """The answer of an MCP server that lists the tool, and answers its call as the test says."""
    asked = json.loads(sent)
    if asked["method"] == "tools/call" and played.status != _OK:
        return played
    result = {"tools": [tool]} if asked["method"] == "tools/list" else played.body or {"content": []}
    return PlayedUpstream(headers=played.headers, body={"jsonrpc": "2.0", "id": asked.get("id"), "result": result})


def _encoded(body: Any) -> tuple[bytes, str]:
    if body is None:
        return b"", ""
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return json.dumps(body).encode(), "application/json"
