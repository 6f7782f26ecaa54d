"""Processes that are forked from one which has imported what they run: each costs a tenth of a start, and dies as any
process does. They are children of that one, not of the tests."""

import io
import multiprocessing
import os
import socket
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([
    "notary.main", "notary.opening", "notary.programs.seal", "notary.service", "notary.servers.table", "notary.walls",
    "notary.store.contract", "ipc.walls.confining", "tests.support.forked",
])  # fmt: skip


class Forked:
    """A process that runs a function, with the members of `subprocess.Popen` that tests ask for."""

    stdout = stderr = None

    def __init__(self, run: Callable[..., None], *arguments: object) -> None:
        self._process = CONTEXT.Process(target=run, args=arguments, daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float) -> int:
        self._process.join(seconds)
        assert self._process.exitcode is not None, "it did not end in time"
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()


def serve_as_notary(control: socket.socket) -> None:
    """`notary.main`, whose supervisor is at the other end."""
    from ipc.process.process_speed import leave
    from notary.main import run

    leave(run(control))


def seal_when_told(arguments: list[str], settings: str, said: Path, word: Connection) -> None:
    """`notary.programs.seal`, once the other end says so; its words go to a file."""
    from notary.programs.seal import main

    word.recv_bytes()
    sys.stdin = io.TextIOWrapper(io.BytesIO(settings.encode()))
    with said.open("w") as sys.stdout:
        sys.stderr = sys.stdout
        code = main(arguments)
    os._exit(code)
