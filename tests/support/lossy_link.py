"""A link to a gateway that loses the answers to some requests after the gateway has given them."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PART_BYTES = 65_536
WAIT_SECONDS = 60.0


@dataclass
class LossyLink:
    """`losses` maps the end of a path to how many of its next answers are lost."""

    socket: str
    losses: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def loses(self, request: bytes) -> bool:
        """True if the link loses the answer to this request."""
        path = request.split(b"\r\n", 1)[0].split(b" ")[1].decode()
        with self.lock:
            for end, left in self.losses.items():
                if path.endswith(end) and left > 0:
                    self.losses[end] = left - 1
                    self.lost += 1
                    return True
        return False


@contextmanager
def lossy_link(target: str, folder: Path) -> Iterator[LossyLink]:
    """Serves a Unix socket in `folder` before that of a gateway until the block ends."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as gateway:
                gateway.settimeout(WAIT_SECONDS)
                gateway.connect(target)
                while request := _message(self.request):
                    gateway.sendall(request)
                    answer = _message(gateway)
                    if link.loses(request):
                        return
                    self.request.sendall(answer)

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    link = LossyLink(str(folder / "link.sock"))
    with Server(link.socket, Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield link
        finally:
            server.shutdown()
            thread.join()


def _message(sender: socket.socket) -> bytes:
    """One whole request or answer; nothing at the end of the connection."""
    whole = b""
    while b"\r\n\r\n" not in whole:
        part = sender.recv(PART_BYTES)
        if not part:
            return b""
        whole += part
    head, _, body = whole.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        part = sender.recv(PART_BYTES)
        if not part:
            return b""
        body, whole = body + part, whole + part
    return whole
