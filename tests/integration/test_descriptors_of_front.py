"""Clients that hold as many connections as they get, where a launcher allows few open files: calls go on."""

import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from tests.support.gateway import PROGRAM, Gateway, gateway, wait_for
from tests.support.ports import free_port
from tests.support.supervised import told


def crowd(stack: ExitStack, port: int, count: int) -> None:
    """Open `count` connections and send half a head on each; the server may refuse some."""
    for _ in range(count):
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120))
        with suppress(OSError):
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")


def digest(gate: Gateway) -> int:
    return gate.agent().execute("text_digest", {"text": "x"}).status_code


def test_half_open_heads_on_the_metrics_socket_leave_calls_their_descriptors(tmp_path: Path) -> None:
    port = free_port()
    config = f'[metrics]\nlisten = "127.0.0.1:{port}"\n[workers]\ncompute = {{min_spare = 0, max = 4}}\n'
    few = ("bash", "-c", 'ulimit -Sn 512; exec "$0" "$@"', *PROGRAM)
    with gateway(tmp_path, config, program=few) as gate, ExitStack() as stack:
        front = gate.child("front")
        crowd(stack, port, 600)
        assert digest(gate) == 200  # it needs a new worker
        assert gate.child("front") == front


def test_a_front_that_can_not_receive_a_worker_gives_that_one_up_and_serves_on(tmp_path: Path) -> None:
    with gateway(tmp_path, "[workers]\ncompute = {min_spare = 1, max = 4}\n") as gate:
        front = gate.child("front")
        agent = gate.agent()
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
        before = front.rlimit(psutil.RLIMIT_NOFILE)
        front.rlimit(psutil.RLIMIT_NOFILE, (3, before[1]))  # what is open stays open; nothing can be received
        try:
            gate.child("worker compute").kill()
            said = "too many open files: the channel of a process was lost"
            wait_for(lambda: told(gate.log.read_text(), said), "a worker that is given up")
        finally:
            front.rlimit(psutil.RLIMIT_NOFILE, before)
        wait_for(lambda: agent.execute("text_digest", {"text": "x"}).status_code == 200, "a call that succeeds")
        assert gate.child("front") == front
        killed = 'gate_workers_killed_total{profile="compute",reason="its channel could not be received"}'
        assert killed in gate.operator().get("/metrics").text
