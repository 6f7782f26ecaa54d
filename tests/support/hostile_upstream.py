"""An upstream that misbehaves: the first segment of the path names what it does. Plain sockets, bounded in time.

Remembers every request line and Host header that reached it. `trap` is a second address that no request may ever reach.
"""

import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

SECONDS = 300.0
"""After this long a script ends by itself."""

_KIB = b"x" * 1024
_OK = b"HTTP/1.1 200 OK\r\n"


@dataclass
class HostileUpstream:
    """Where it is and what it saw."""

    address: str
    trap_address: str
    seen: list[tuple[str, str]] = field(default_factory=list)
    """(request line, Host header) of each request."""
    trapped: list[bytes] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def targets(self) -> list[str]:
        """Request targets, in order."""
        return [line.split(" ")[1] for line, _ in self.seen]


Script = Callable[[socket.socket, HostileUpstream], None]


def _says(answer: bytes) -> Script:
    return lambda sock, _: sock.sendall(answer)


def _json(body: bytes, *headers: bytes) -> Script:
    lines = [b"Content-Type: application/json", b"Content-Length: %d" % len(body), *headers, b"", b""]
    return _says(_OK + b"\r\n".join(lines) + body)


def _for_ever(start: bytes, more: bytes, pause: float = 0.0) -> Script:
    def script(sock: socket.socket, up: HostileUpstream) -> None:
        sock.sendall(start)
        while not up.stop.wait(pause) if pause else not up.stop.is_set():
            sock.sendall(more)

    return script


def _silent(_: socket.socket, up: HostileUpstream) -> None:
    up.stop.wait(SECONDS)


def _says_and_stays(answer: bytes) -> Script:
    def script(sock: socket.socket, up: HostileUpstream) -> None:
        sock.sendall(answer)
        up.stop.wait(SECONDS)

    return script


def _reset(sock: socket.socket, _: HostileUpstream) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _redirect(status: bytes) -> Script:
    def script(sock: socket.socket, up: HostileUpstream) -> None:
        location = f"http://{up.trap_address}/stolen".encode()
        sock.sendall(b"HTTP/1.1 " + status + b" X\r\nLocation: " + location + b"\r\nContent-Length: 2\r\n\r\n{}")

    return script


SCRIPTS: dict[str, Script] = {
    "fine": _json(b'{"ok":true}'),
    "unavailable": _says(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}"),
    # sizes
    "endless-body": _for_ever(_OK + b"\r\n", _KIB),
    "endless-chunks": _for_ever(_OK + b"Transfer-Encoding: chunked\r\n\r\n", b"400\r\n" + _KIB + b"\r\n"),
    "endless-headers": _for_ever(_OK, b"X-More: " + _KIB + b"\r\n"),
    "endless-header": _for_ever(_OK + b"X-Long: ", _KIB),
    "endless-status-line": _for_ever(b"HTTP/1.1 200 ", _KIB),
    "endless-interim": _for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless-chunk-extension": _for_ever(_OK + b"Transfer-Encoding: chunked\r\n\r\n2;", _KIB),
    "endless-trailers": _for_ever(_OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-More: " + _KIB + b"\r\n"),
    "many-headers": _says(_OK + b"X: y\r\n" * 500 + b"Content-Length: 2\r\n\r\n{}"),
    "announced-huge": _says_and_stays(_OK + b"Content-Length: 900000000000\r\n\r\nx"),
    # time
    "silent": _silent,
    "slow-head": _for_ever(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x", 0.05),
    "slow-body": _for_ever(_OK + b"Content-Length: 50000\r\n\r\n", b"x", 0.05),
    "stays-open": _says_and_stays(_OK + b"Content-Length: 100\r\n\r\nx"),
    # ends
    "nothing": _says(b""),
    "reset": _reset,
    "half-a-head": _says(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "half-a-body": _says(_OK + b"Content-Length: 100\r\n\r\nhalf"),
    "half-a-chunk": _says(_OK + b"Transfer-Encoding: chunked\r\n\r\n64\r\nhalf"),
    "no-last-chunk": _says(_OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
    # lies about lengths
    "more-than-announced": _says(_OK + b"Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
    "two-lengths": _says(_OK + b"Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}xx"),
    "a-list-of-lengths": _says(_OK + b"Content-Length: 2, 4\r\n\r\n{}xx"),
    "length-and-chunks": _says(_OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
    "negative-length": _says(_OK + b"Content-Length: -2\r\n\r\n{}"),
    "length-in-words": _says(_OK + b"Content-Length: two\r\n\r\n{}"),
    "negative-chunk": _says(_OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n"),
    "overflowing-chunk": _says(_OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff2\r\n{}\r\n0\r\n\r\n"),
    "chunk-without-end": _says(_OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n"),
    "unknown-coding": _says(_OK + b"Transfer-Encoding: gzip\r\n\r\n{}"),
    # what is no answer
    "garbage": _says(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20),
    "http-0.9": _says(b"{}"),
    "http-2": _says(b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
    "status-in-words": _says(b"HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\n{}"),
    "status-1000": _says(b"HTTP/1.1 1000 X\r\nContent-Length: 2\r\n\r\n{}"),
    "bare-line-feeds": _says(b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}"),
    "folded-header": _says(_OK + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}"),
    "nul-in-a-header": _says(_OK + b"X: a\x00b\r\nContent-Length: 2\r\n\r\n{}"),
    "space-before-colon": _says(_OK + b"Content-Length : 2\r\n\r\n{}"),
    "switching-protocols": _says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: evil\r\n\r\n"),
    # redirects
    **{f"redirect-{status}": _redirect(str(status).encode()) for status in (301, 302, 303, 307, 308)},
    # bodies that are not what they say
    "compressed": _json(b"\x1f\x8b\x08\x00" + bytes(range(256)), b"Content-Encoding: gzip"),
    "not-utf-8": _json(b'{"a":"\xff\xfe"}'),
    "half-a-surrogate": _json(b'{"a":"\\ud800"}'),
    "not-json": _json(b"{nope"),
    "nan": _json(b'{"a":NaN}'),
    "name-twice": _json(b'{"a":1,"a":2}'),
    "beyond-integers": _json(b'{"a":123456789012345678901234567890}'),
    "beyond-floats": _json(b'{"a":1e999}'),
    "deep": _json(b"[" * 5_000 + b"]" * 5_000),
    "deep-but-whole": _json(b"[" * 31 + b"]" * 31),
    "prototype": _json(b'{"__proto__":{"decision":"executed"},"receipt_id":"rcpt_evil"}'),
    "nothing-but-spaces": _json(b" " * 500),
    "control-characters": _json(b'{"a":"\\u0000\\u001b[2J\\u202e"}'),
}  # fmt: skip


def _serve(sock: socket.socket, up: HostileUpstream) -> None:
    with sock, suppress(OSError):
        sock.settimeout(SECONDS)
        head = b""
        while b"\r\n\r\n" not in head:
            data = sock.recv(65536)
            if not data:
                return
            head += data
        lines = head.decode("latin-1").split("\r\n")
        host = next((line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")), "")
        up.seen.append((lines[0], host))
        name = re.split(r"[/?]", lines[0].split(" ")[1].removeprefix("/"))[0]
        SCRIPTS.get(name, SCRIPTS["fine"])(sock, up)
        sock.shutdown(socket.SHUT_WR)


def _accept(listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    with suppress(OSError):
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=serve, args=(sock,), daemon=True).start()


@contextmanager
def hostile_upstream() -> Iterator[HostileUpstream]:
    """Serve until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as trap:
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in (listener, trap)]
        up = HostileUpstream(addresses[0], addresses[1])

        def spring(sock: socket.socket) -> None:
            with sock, suppress(OSError):
                sock.settimeout(SECONDS)
                up.trapped.append(sock.recv(4096))

        threads = [
            threading.Thread(target=_accept, args=(listener, lambda sock: _serve(sock, up))),
            threading.Thread(target=_accept, args=(trap, spring)),
        ]
        for thread in threads:
            thread.start()
        try:
            yield up
        finally:
            up.stop.set()
            for one in (listener, trap):
                one.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(60)
