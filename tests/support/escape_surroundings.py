"""The targets of an escape: files beside those of actions, and sockets of others."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

FILES = ("gateway.toml", "ledger.sqlite3", "keys/receipt.pem", "keys/spare", "files/mine")
CONTENT = "secret"


@contextmanager
def surroundings(outside: Path) -> Iterator[dict[str, Any]]:
    """Facts for the steps of the escape table, all but `parent`. At the end nothing of it may have changed."""
    for folder in ("files", "keys", "modules-cache"):
        (outside / folder).mkdir(0o700)
    for name in FILES:
        (outside / name).write_text(CONTENT)
    files, key = outside / "files", outside / "keys" / "receipt.pem"
    (files / "link").symlink_to(key)
    abstract = f"escape-{os.getpid()}"
    with ExitStack() as stack:
        port = _listening(stack, abstract, str(outside / "socket"))
        before = _tree(outside)
        yield {
            "outside": str(outside), "files": str(files), "key": str(key), "new": str(files / "new"), "code": __file__,
            "socket": str(outside / "socket"), "abstract": abstract, "port": port, "front": os.getpid(),
        }  # fmt: skip
        assert _tree(outside) == before
        assert {(outside / name).read_text() for name in FILES} == {CONTENT}


def _tree(folder: Path) -> set[Path]:
    """All but what a template keeps there."""
    return {path for path in folder.rglob("*") if not path.name.startswith(("modules-cache", "template."))}


def _listening(stack: ExitStack, abstract: str, path: str) -> int:
    """Sockets of every kind; the port of those of the internet."""
    port = next(port for port in (_on_one_port(stack) for _ in range(100)) if port is not None)
    for name in (path, f"\0{abstract}"):
        sock = stack.enter_context(socket.socket(socket.AF_UNIX))
        sock.bind(name)
        sock.listen()
    return port


def _on_one_port(stack: ExitStack) -> int | None:
    """Sockets of the internet, of every kind; None where the port of the first is taken for another one."""
    port = 0
    with ExitStack() as sockets:
        for family, kind, address in (
            (socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1"), (socket.AF_INET6, socket.SOCK_STREAM, "::1"),
            (socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1"),
        ):  # fmt: skip
            sock = sockets.enter_context(socket.socket(family, kind))
            try:
                sock.bind((address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                return None
            port = int(sock.getsockname()[1])
            if kind == socket.SOCK_STREAM:
                sock.listen()
        stack.enter_context(sockets.pop_all())
    return port
