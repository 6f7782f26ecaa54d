"""`gatectl mcp` as a process: lines that no library writes, signals, and a host that goes away."""

import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.gatectl import SCRIPT, SECONDS, Gatectl

CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"text_digest","arguments":{"text":%s}}}'
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip


@contextmanager
def started(gatectl: Gatectl) -> Iterator[subprocess.Popen[bytes]]:
    """A server that has answered `initialize`, which came behind a byte order mark."""
    with subprocess.Popen(
        [SCRIPT, "mcp"], env=gatectl.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        deadline = threading.Timer(SECONDS, process.kill)
        deadline.start()
        try:
            send(process, "\ufeff" + json.dumps(INITIALIZE))
            assert answer(process)["result"]["protocolVersion"] == "2025-03-26"
            send(process, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
            yield process
        finally:
            deadline.cancel()
            process.kill()


def send(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode("latin-1" if "\xff" in line else "utf-8") + b"\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def test_an_interrupt_ends_it_at_once_and_without_a_word(gatectl: Gatectl) -> None:
    with started(gatectl) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        assert process.stderr is not None
        assert process.stderr.read().count(b"\n") == 1  # the address that it served


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_a_host_that_goes_away_ends_it(gatectl: Gatectl, stream: str) -> None:
    with started(gatectl) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if stream == "stdin":
            process.stdin.close()
        else:
            process.stdout.close()
            send(process, CALL % (2, '"x"'))
        assert process.wait(SECONDS) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_standard_streams_of_a_host_that_never_waits_serve_as_any_other(gatectl: Gatectl) -> None:
    """The owner of a shared socket or terminal may have made it non-blocking."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    stream = theirs.fileno()
    with ours, theirs, subprocess.Popen([SCRIPT, "mcp"], env=gatectl.environ, stdin=stream, stdout=stream) as process:
        ours.settimeout(SECONDS)
        try:
            for number in range(2):
                time.sleep(1.0)  # it has nothing to read
                assert process.poll() is None
                ours.sendall(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number)
                assert json.loads(ours.recv(65_536))["id"] == number
        finally:
            process.kill()
