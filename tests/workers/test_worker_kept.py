"""Workers that keep a connection to an upstream, as processes of their own: what ends the connection."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.worker_peers import Worker
from tests.support.worker_plans import post_plan
from tests.support.worker_template import Template, kill
from tests.support.worker_upstream import lasting, upstream

SECONDS = 60.0


@contextmanager
def keeping(running: Template) -> Iterator[tuple[Worker, threading.Event]]:
    """A worker that has just served a call, and an event: its connection has ended."""
    ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        lasting()(connection)
        if not connection.recv(1):
            ended.set()

    with upstream(answer) as up:
        worker = running.born("http")
        assert worker.call(post_plan(up.address)).outcome == "success"
        yield worker, ended


def test_a_worker_that_has_nothing_to_do_ends_the_connections_that_it_kept(running: Template) -> None:
    with keeping(running) as (worker, ended):
        assert ended.wait(SECONDS)
        assert worker.call(post_plan("127.0.0.1:9")).outcome == "host_io", "it serves"


def test_the_end_of_a_worker_ends_the_connections_that_it_kept(running: Template) -> None:
    with keeping(running) as (worker, ended):
        kill(worker.pid)
        assert ended.wait(SECONDS)
