"""A server that answers each path with what a test has written down, as no real gateway does on demand."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl


@dataclass
class ScriptedGateway:
    """`answers`: `METHOD path` without query to status and JSON body; a list is answered one by one, the last for ever;
    a function is asked with the members of the query.

    A body that is a string is sent as it stands. Every other request gets 404 not_found.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, method: str, target: str) -> tuple[int, Any]:
        self.requests.append(f"{method} {target}")
        reply = self.answers.get(f"{method} {target.partition('?')[0]}", (404, {"error": "not_found"}))
        if isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        if callable(reply):
            reply = reply(dict(parse_qsl(target.partition("?")[2])))
        status, body = reply
        return status, body


@contextmanager
def scripted_gateway(answers: dict[str, Any], port: int = 0, **headers: str) -> Iterator[ScriptedGateway]:
    """Serve until the block ends, on any port or on `port`. `headers`: of every answer, underscores for dashes."""
    script = ScriptedGateway(answers, {name.replace("_", "-"): value for name, value in headers.items()})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            script.tokens.append(self.headers.get("Authorization") or "")
            status, body = script.answer(self.command, self.path)
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **script.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = False
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
