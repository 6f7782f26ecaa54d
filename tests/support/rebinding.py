"""A gateway in a network of its own, with a name server that changes its mind.

`-m tests.support.rebinding FOLDER COMMAND…`, in fresh namespaces of network and mounts whose `resolv.conf` names
127.0.0.1. PUBLIC is an address of this host there, so that whatever is sent to it stays here. Serves names and HTTP
until COMMAND ends, and then ends as it did. FOLDER gets a line for each question and each request.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ipc.process.parent import die_with_parent

PUBLIC, PRIVATE = "8.8.8.8", "127.0.0.1"
REBINDING, MIXED = "rebinding.gateway.test", "mixed.gateway.test"
ANSWERS = {REBINDING: ((PUBLIC,), (PRIVATE,)), MIXED: ((PRIVATE, PUBLIC),)}
"""Name -> addresses at each question, those of the last one from then on."""
QUESTIONS, ARRIVED = "questions", "arrived"
_A = 1


def add_line(file: Path, line: str) -> None:
    """In one write, so that lines of several threads stay whole."""
    with file.open("a") as stream:
        stream.write(f"{line}\n")


def answer(asked: bytes, turns: Counter[str], log: Path) -> bytes:
    """The answer to a question for addresses of a name (RFC 1035 §4.1), empty for every type but IPv4."""
    labels, at = [], 12
    while length := asked[at]:
        labels.append(asked[at + 1 : at + 1 + length].decode())
        at += 1 + length
    name, (kind,) = ".".join(labels).lower(), struct.unpack_from(">H", asked, at + 1)
    addresses: tuple[str, ...] = ()
    if kind == _A and name in ANSWERS:
        addresses = ANSWERS[name][min(turns[name], len(ANSWERS[name]) - 1)]
        turns[name] += 1
        add_line(log, f"{name} {' '.join(addresses)}")
    head = asked[:2] + struct.pack(">HHHHH", 0x8580, 1, len(addresses), 0, 0)
    records = [struct.pack(">HHHIH", 0xC00C, _A, 1, 0, 4) + socket.inet_aton(one) for one in addresses]
    return head + asked[12 : at + 5] + b"".join(records)


def serve_names(folder: Path) -> None:
    """For ever, on port 53."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((PRIVATE, 53))
    turns = Counter[str]()

    def serve() -> None:
        while True:
            asked, whom = sock.recvfrom(4096)
            sock.sendto(answer(asked, turns, folder / QUESTIONS), whom)

    threading.Thread(target=serve, daemon=True).start()


def serve_http(folder: Path, address: str) -> None:
    """For ever, on port 80: says 200, and notes by which address it was reached."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            add_line(folder / ARRIVED, address)
            body = b'{"ok":true}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Dropped: no test reads this log."""

    threading.Thread(target=ThreadingHTTPServer((address, 80), Handler).serve_forever, daemon=True).start()


def main() -> int:
    """Serve and run."""
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    for file in (QUESTIONS, ARRIVED):
        (folder / file).touch()
    serve_names(folder)
    for address in (PUBLIC, PRIVATE):
        serve_http(folder, address)
    own = os.getpid()
    child = subprocess.Popen(command, preexec_fn=lambda: die_with_parent(own))
    signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
