"""A gateway and its edge end at the same moment, as in a pod, and answer the call that is under way."""

import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.certificates import made_certificate
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.gateway import ANSWER_SECONDS, STOP_SECONDS, gateway, wait_for
from tests.support.issued_tokens import behind_an_edge, leased
from tests.support.upstream import Upstream

TLS = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'


def _listens(before: Edge) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", before.port)) == 0


@pytest.mark.parametrize("http2", [False, True], ids=["HTTP/1.1", "HTTP/2"])
def test_a_call_under_way_is_answered_when_both_are_told_to_end(tmp_path: Path, up: Upstream, http2: bool) -> None:
    roots = made_certificate(tmp_path, "127.0.0.1")
    name = f"{tmp_path.name}-{http2}"
    with (
        gateway(tmp_path, behind_an_edge(tmp_path, up)) as gate,
        edge(edge_config(tmp_path, gate.ready["client_socket"], TLS), roots) as before,
        ThreadPoolExecutor(1) as threads,
    ):
        agent = leased(before.client(http2=http2))
        try:
            call = threads.submit(agent.execute, "http_fetch", {"path": f"wait/{name}"})
            wait_for(lambda: any(name in seen.path for seen in up.seen), "the call at the upstream")
            for process in (gate.process, before.process):
                process.send_signal(signal.SIGTERM)
            wait_for(lambda: not _listens(before), "the end of the edge's listener")
            wait_for(lambda: '"draining"' in gate.log.read_text(), "a gateway that drains")
        finally:
            up.held(name).set()
        answer = call.result(ANSWER_SECONDS)
        assert answer.status_code == 200, answer.text
        assert answer.headers.get("connection") == (None if http2 else "close")
        assert gate.process.wait(STOP_SECONDS) == 0
        assert before.process.wait(STOP_SECONDS) == 0
