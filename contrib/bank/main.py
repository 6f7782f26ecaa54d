"""The bank as a process: `python -m contrib.bank.main --listen-fd N --parent PID`, started by `gateway dev` alone.

Serves on the one loopback socket that it is handed, knows no key and no file, and ends with the gateway. A bounded
number of connections, each with a deadline; a body has a length and is at most a megabyte.
"""

import argparse
import json
import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from setproctitle import setproctitle

from contrib.bank.ledger import Bank, BankRequest
from ipc.process.parent import die_with_parent, leave_signals_to_parent, refuse_core_dumps
from ipc.walls.privileges import keep_capabilities, refuse_new_privileges

MAX_BODY = 1_048_576
MAX_CONNECTIONS = 32
PATIENCE_SECONDS = 15.0
NICE = 10


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE_SECONDS
    server: "BankServer"

    def _answer(self) -> None:
        length = self.headers.get("Content-Length", "" if self.headers.get("Transfer-Encoding") else "0")
        if not (length.isascii() and length.isdecimal() and int(length) <= MAX_BODY):
            self.close_connection = True
            self._send(413 if length.isdecimal() else 411, {"error": f"a body has a length of at most {MAX_BODY}"})
            return
        is_authorised = self.headers.get("Authorization", "").startswith("Bearer ")
        body = self.rfile.read(int(length))
        self._send(*self.server.bank.answer(BankRequest(self.command, self.path, is_authorised, body)))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names that http.server looks for

    def _send(self, status: int, told: dict[str, Any]) -> None:
        raw = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """The gateway's own log says what was called."""


class BankServer(ThreadingHTTPServer):
    """A thread a connection; more connections than MAX_CONNECTIONS wait to be accepted."""

    daemon_threads = True

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.bank = Bank()
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Each connection has its deadline, so that a place is always given back."""
        self._places.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In the connection's own thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A worker that was killed in the middle of its call is no fault of the bank."""


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="contrib.bank.main", allow_abbrev=False)
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    arguments = parser.parse_args()
    die_with_parent(arguments.parent)
    leave_signals_to_parent()
    keep_capabilities(())
    refuse_new_privileges()
    refuse_core_dumps()
    setproctitle("gateway: upstream")
    os.nice(NICE)
    os.set_inheritable(arguments.listen_fd, False)
    BankServer(socket.socket(fileno=arguments.listen_fd)).serve_forever(poll_interval=60.0)


if __name__ == "__main__":
    main()
