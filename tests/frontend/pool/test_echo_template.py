"""The process that forks the workers of these tests."""

import os
import socket
import threading
from pathlib import Path

from tests.support.echo_template import EchoTemplate
from tests.support.gateway import wait_for


def forks(template: EchoTemplate) -> bool:
    """True if a worker is forked, and says how it ended."""
    one, other = socket.socketpair()
    with one, other:
        worker = template.fork((one.fileno(), other.fileno()), ["--nothing-that-a-worker-knows"])
        return worker.wait(60) == 2


def test_it_outlives_the_thread_that_started_it_and_ends_when_the_tests_do() -> None:
    made: list[tuple[EchoTemplate, int]] = []

    def start() -> None:
        template = EchoTemplate()
        assert forks(template)
        made.append((template, threading.get_native_id()))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    ((template, task),) = made
    wait_for(lambda: not Path(f"/proc/{os.getpid()}/task/{task}").exists(), "the end of the thread", 60)
    assert forks(template)
    template._sock.close()
    assert template._process is not None
    assert template._process.wait(60) == 0
