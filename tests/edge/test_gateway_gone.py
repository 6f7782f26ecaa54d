"""A gateway that is gone, breaks off or hangs, and the end of the edge itself."""

import socket
import threading
from pathlib import Path

import httpx
import pytest
import trio

from edge.endpoints import EDGE_ENDPOINTS
from edge.gateway import ClientSocket, NoAnswer
from edge.places import GatewayPlaces
from frontend.api.routes import ROUTES
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import SECONDS, answered, statuses
from tests.support.gateway import STOP_SECONDS, wait_for
from tests.support.hostile_gateway import LOST, SILENT, Play, hostile_gateway, whole


def error(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["x-trace-id"]
    return answer.status_code, answer.json()["error"]


def test_every_endpoint_of_the_client_socket_is_forwarded_but_the_edges_own() -> None:
    paths = {(one.method, one.path) for one in ROUTES if "client" in one.sockets} - {("POST", "/v1/proofs")}
    rows = {(row.method, path) for method, path in paths for row in EDGE_ENDPOINTS
            if row.method == method and row.path.fullmatch(path.replace("{", "").replace("}", ""))}  # fmt: skip
    assert rows == paths
    assert len(EDGE_ENDPOINTS) == len(paths)


def test_a_gateway_that_is_gone_is_503_and_the_log_says_so(tmp_path: Path) -> None:
    with edge(edge_config(tmp_path, tmp_path / "gate.sock")) as before:
        answer = before.client().get("/healthz")
        assert error(answer) == (503, "gateway_unreachable")
        (line,) = [line for line in before.lines() if line.get("code") == "gateway_unreachable"]
        assert line["trace_id"] == answer.headers["x-trace-id"]
        with hostile_gateway(whole(b"{}", Connection="close"), str(tmp_path / "gate.sock")):
            assert before.client().get("/healthz").status_code == 200


@pytest.mark.parametrize("play", LOST.values(), ids=LOST)
def test_a_gateway_that_breaks_off_is_502_and_is_asked_once(tmp_path: Path, play: Play) -> None:
    with (
        hostile_gateway(play, str(tmp_path / "gate.sock")) as behind,
        edge(edge_config(tmp_path, "gate.sock")) as before,
    ):
        answer = before.client().post("/v1/actions/a/execute", json={})
        assert error(answer) == (502, "gateway_broke_off")
        assert len(behind.requests) == 1


def test_a_gateway_that_hangs_is_504(tmp_path: Path) -> None:
    endpoint = EDGE_ENDPOINTS[0]._replace(seconds=0.2)

    async def asked() -> None:
        socket_of_gateway = ClientSocket(str(tmp_path / "gate.sock"), GatewayPlaces(1))
        async with socket_of_gateway.asked("127.0.0.1", endpoint, b"/healthz", [], b""):
            pass

    with hostile_gateway(SILENT, str(tmp_path / "gate.sock")), pytest.raises(NoAnswer) as refused:
        trio.run(asked)
    assert (refused.value.status, refused.value.code) == (504, "gateway_timeout")


def test_answers_under_way_are_finished_when_it_is_told_to_end(tmp_path: Path) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def late(connection: object) -> None:
        asked.set()
        may_answer.wait(SECONDS)
        whole(b'{"late": true}', Connection="close")(connection)  # type: ignore[arg-type]

    with (
        hostile_gateway(late, str(tmp_path / "gate.sock")),
        edge(edge_config(tmp_path, "gate.sock")) as before,
        socket.create_connection(("127.0.0.1", before.port), SECONDS) as sock,
        socket.create_connection(("127.0.0.1", before.port), SECONDS) as idle,
    ):
        sock.sendall(b"GET /v1/actions HTTP/1.1\r\nHost: x\r\n\r\n")
        assert asked.wait(SECONDS)
        before.process.terminate()
        wait_for(lambda: not _listens(before), "the end of the listener")
        may_answer.set()
        assert statuses(answered(sock, b"")) == [200]
        assert idle.recv(1) == b""
        assert before.process.wait(STOP_SECONDS) == 0


def _listens(before: Edge) -> bool:
    try:
        socket.create_connection(("127.0.0.1", before.port), SECONDS).close()
    except ConnectionRefusedError:
        return False
    return True
