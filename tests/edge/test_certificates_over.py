"""Certificates of clients that count no more while their connection is open: their root is gone, or their time over."""

import shutil
import socket
import threading
import time
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from edge.connections import LOOK_SECONDS, EdgeConnections
from edge.tls import EdgeCertificate
from ipc.configuration.edge_settings import EdgeLimitSettings, EdgeTlsSettings
from tests.edge.test_connections import admitted
from tests.support.authority import Authority
from tests.support.certificates import made_certificate
from tests.support.edge_process import edge, edge_config
from tests.support.edge_wire import SECONDS, Frames, answered, connected, statuses
from tests.support.gateway import wait_for
from tests.support.hostile_gateway import Connection, hostile_gateway, whole

ASKED = b"GET /v1/actions HTTP/1.1\r\nHost: x\r\n\r\n"
HEAD = [(":method", "GET"), (":path", "/v1/actions"), (":scheme", "https"), (":authority", "gate.example")]
TLS = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\nclient_ca_file = "clients.pem"\n'


def authorities(folder: Path) -> tuple[Authority, Authority]:
    """That of `clients.pem`, and another one."""
    (folder / "others").mkdir()
    return Authority(folder, "clients"), Authority(folder / "others", "clients")


def test_connections_of_a_root_that_is_gone_end_after_their_answers(tmp_path: Path) -> None:
    clients, others = authorities(tmp_path)
    issued = clients.issue("agent.example")
    issued.certificate.write_text(issued.certificate.read_text() + issued.key.read_text())
    roots = Path(shutil.copy(made_certificate(tmp_path, "127.0.0.1"), tmp_path / "roots.pem"))
    may_answer = threading.Event()

    def late(connection: Connection) -> None:
        may_answer.wait(SECONDS)
        whole(b"{}", Connection="close")(connection)

    with (
        hostile_gateway(late, str(tmp_path / "gate.sock")) as behind,
        edge(edge_config(tmp_path, "gate.sock", TLS), roots) as before,
        connected(before, context=before.trusting(issued.certificate)) as old,
        connected(before, "h2", context=before.trusting(issued.certificate)) as http2,
        connected(before) as nameless,
    ):
        frames = Frames(http2)
        frames.h2.send_headers(1, HEAD, end_stream=True)
        frames.flush()
        for sock in (old, nameless):
            sock.sendall(ASKED)
        wait_for(lambda: len(behind.requests) == 3, "requests at the gateway")
        shutil.copy(others.file, clients.file)
        wait_for(lambda: any("root was removed" in line["message"] for line in before.lines()), "a line about the root")
        frames.h2.send_headers(3, HEAD, end_stream=True)
        frames.flush()
        assert frames.outcome() == 421
        may_answer.set()
        assert frames.outcome() == 200
        assert statuses(answered(old, b"")) == statuses(answered(nameless, b"")) == [200]
        assert _is_over(old)
        assert _is_over(http2)
        assert statuses(answered(nameless, ASKED)) == [200]


def _is_over(sock: socket.socket) -> bool:
    try:
        while sock.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def test_a_root_that_is_added_ends_no_connection(tmp_path: Path) -> None:
    clients, others = authorities(tmp_path)
    made_certificate(tmp_path, "127.0.0.1")
    pair = [str(tmp_path / name) for name in ("certificate.pem", "key.pem")]
    certificate = EdgeCertificate(EdgeTlsSettings(pair[0], pair[1], str(clients.file)))
    gone: list[int] = []
    certificate.roots_gone = lambda: gone.append(1)
    first = clients.file.read_text()
    for text, count in ((first + others.file.read_text(), 0), ("no certificate", 0), (others.file.read_text(), 1)):
        clients.file.write_text(text)
        certificate.look_again()
        assert len(gone) == count


@pytest.mark.parametrize(("seconds", "is_cut"), [(-1, True), (3600, False)], ids=["is over", "lasts"])
async def test_a_connection_without_a_request_ends_with_its_certificate(
    autojump_clock: MockClock, nursery: trio.Nursery, seconds: float, is_cut: bool
) -> None:
    connections = EdgeConnections(EdgeLimitSettings())
    nursery.start_soon(connections.watch)
    async with admitted(connections) as shown, admitted(connections) as nameless:
        shown.show(b"certificate", time.time() + seconds)
        with shown.request():
            await trio.sleep(3 * LOOK_SECONDS)
            assert not shown.scope.cancel_called
        await trio.sleep(3 * LOOK_SECONDS)
        assert (shown.scope.cancel_called, nameless.scope.cancel_called) == (is_cut, False)
