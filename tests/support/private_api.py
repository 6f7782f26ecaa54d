"""A billing API in a private network, as docs/your-api.md has it: TLS of its own authority, OAuth2, form bodies.

`-m tests.support.private_api FOLDER ADDRESS` serves both names of the document at ADDRESS:443 until it is killed, with
the certificates in FOLDER. FOLDER/requests gets a line of JSON for each request to the API.
"""

import base64
import json
import os
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from ipc.process.parent import die_with_parent

API, LOGIN = "billing.corp.example", "login.corp.example"
CLIENT, SECRET, TOKEN = "gateway", "the client secret", "a-token-of-the-login-server"
READY = "ready"


class Handler(BaseHTTPRequestHandler):
    """Both servers: the names of the two lead to one address."""

    protocol_version = "HTTP/1.1"
    requests: Path

    def do_GET(self) -> None:
        """List invoices."""
        self._api("", 200, [{"id": "inv_7", "amount_cents": 2500, "status": "open"}])

    def do_POST(self) -> None:
        """Issue a token, or a refund."""
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if self.path == "/oauth/token":
            self._token(parse_qs(body))
        else:
            amount = int(parse_qs(body)["amount_cents"][0])
            self._api(body, 201, {"id": "re_1", "invoice": self.path.split("/")[3], "amount_cents": amount})

    def _token(self, form: dict[str, list[str]]) -> None:
        shown = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET.replace(' ', '+')}".encode()).decode()
        wanted = {"grant_type": ["client_credentials"], "scope": ["invoices"]}
        if self.headers["authorization"] != shown or form != wanted:
            self._answer(401, {"error": "invalid_client"})
        else:
            self._answer(200, {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 600})

    def _api(self, body: str, status: int, answer: object) -> None:
        line = {
            "request": f"{self.command} {self.path}", "body": body, "type": self.headers["content-type"],
            "authorization": self.headers["authorization"], "host": self.headers["host"],
        }  # fmt: skip
        with self.requests.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        if self.headers["authorization"] != f"Bearer {TOKEN}":
            self._answer(401, {"error": "invalid_token"})
        else:
            self._answer(status, answer)

    def _answer(self, status: int, body: object) -> None:
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *_: Any) -> None:
        """Dropped: no test reads this log."""


def main() -> None:
    """Serve."""
    folder, address = Path(sys.argv[1]), sys.argv[2]
    die_with_parent(os.getppid())
    contexts: dict[str, ssl.SSLContext] = {}
    for name in (API, LOGIN):
        context = contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}-key.pem")
        context.load_verify_locations(folder / "corp-ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED

    def by_name(connection: ssl.SSLObject, name: str, _: ssl.SSLContext) -> None:
        connection.context = contexts[name]

    contexts[API].sni_callback = by_name
    Handler.requests = folder / "requests"
    server = ThreadingHTTPServer((address, 443), Handler)
    server.socket = contexts[API].wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    (folder / READY).touch()
    server.serve_forever()


if __name__ == "__main__":
    main()
