"""Places at the gateway: clients that do not take their answers keep none."""

import contextlib
import socket
from pathlib import Path

from edge.gateway import PLACES
from tests.support.edge_process import edge, edge_config
from tests.support.edge_wire import SECONDS, Frames
from tests.support.hostile_gateway import hostile_gateway, whole

ASKED = [(":method", "GET"), (":path", "/v1/actions"), (":scheme", "http"), (":authority", "gate.example")]
STREAMS = 32
ADDRESSES = 3


def test_clients_that_do_not_take_their_answers_keep_no_place(tmp_path: Path) -> None:
    with (
        hostile_gateway(whole(b"{}", Connection="close"), str(tmp_path / "gate.sock")),
        edge(edge_config(tmp_path, "gate.sock", "[limits]\nsend_seconds = 3000\n")) as before,
        contextlib.ExitStack() as clients,
    ):
        for number in range(2 * ADDRESSES):
            address = f"127.0.0.{2 + number // 2}"
            sock = clients.enter_context(socket.create_connection(("127.0.0.1", before.port), SECONDS, (address, 0)))
            frames = Frames(sock)
            frames.h2.update_settings({4: 0})  # no byte of a body may come
            for at in range(STREAMS):
                frames.h2.send_headers(2 * at + 1, ASKED, end_stream=True)
            frames.flush()
            assert frames.outcome() == 200
        assert 2 * ADDRESSES * STREAMS > PLACES
        assert before.client().get("/healthz").status_code == 200
