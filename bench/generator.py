"""The handle of the load generator: one process for a whole run, one job at a time."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.subjects import Subject

EXECUTE = "/v1/actions/text_digest/execute"
BODY = '{"text":"hello"}'
JOB_SECONDS = 300.0


class Generator:
    """Sends jobs to `bench/load.py` and waits for their figures."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def calls(self, subject: Subject, connections: int, seconds: float, **more: Any) -> dict[str, Any]:
        """Durable executes of text_digest, or requests of the same size to a floor; `more` as in `bench.load.Job`."""
        return self._run(subject, subject.mode, EXECUTE, BODY, connections, seconds, more)

    def posts(
        self, subject: Subject, path: str, body: str, connections: int, seconds: float, **more: Any
    ) -> dict[str, Any]:  # fmt: skip
        """Durable executes of any action, or requests of the same size to a floor; `more` as in `bench.load.Job`."""
        return self._run(subject, subject.mode, path, body, connections, seconds, more)

    def gets(self, subject: Subject, path: str, seconds: float) -> dict[str, Any]:
        """GET requests over one connection."""
        return self._run(subject, "get", path, "", 1, seconds, {})

    def _run(
        self, subject: Subject, mode: str, path: str, body: str, connections: int, seconds: float, more: dict[str, Any]
    ) -> dict[str, Any]:  # fmt: skip
        job = {
            "address": subject.address, "base_url": subject.base_url, "pids": [subject.pid, *subject.beside],
            "mode": mode, "path": path, "body": body, "connections": connections, "seconds": seconds, **more,
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        self._process.stdin.flush()
        watchdog = threading.Timer(JOB_SECONDS, self._process.kill)
        watchdog.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        figures: dict[str, Any] = json.loads(line) if line else {"error": "the load generator ended"}
        if "error" in figures:
            raise RuntimeError(figures["error"])
        return figures


@contextmanager
def generator() -> Iterator[Generator]:
    """A running load generator."""
    process = subprocess.Popen([sys.executable, "-m", "bench.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Generator(process)
    finally:
        process.kill()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()
