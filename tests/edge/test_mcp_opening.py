"""Tokens that the gateway is being asked about: one address can't take the places of all others."""

import contextlib
import select
import socket
from functools import partial
from pathlib import Path

from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import SECONDS, statuses
from tests.support.gateway import wait_for
from tests.support.hostile_gateway import SILENT, HostileGateway, hostile_gateway
from tests.support.mcp_over_http import MCP, access_token

TOKENS = 40


def _asks(serving: Edge, address: str, name: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", serving.port), SECONDS, (address, 0))
    head = f"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nAuthorization: Bearer {access_token(jti=name)}"
    sock.sendall(f"{head}\r\n\r\n{{}}".encode())
    return sock


def _is_judged(sock: socket.socket, behind: HostileGateway, before: int) -> bool:
    return len(behind.requests) > before or bool(select.select([sock], [], [], 0)[0])


def test_tokens_of_one_address_leave_room_for_those_of_others(tmp_path: Path) -> None:
    with (
        hostile_gateway(SILENT, str(tmp_path / "gate.sock")) as behind,
        edge(edge_config(tmp_path, "gate.sock", MCP)) as serving,
        contextlib.ExitStack() as clients,
    ):
        asking: list[socket.socket] = []
        for number in range(2 * TOKENS):
            asked = len(behind.requests)
            asking.append(clients.enter_context(_asks(serving, f"127.0.0.{2 + number // TOKENS}", f"t{number}")))
            wait_for(partial(_is_judged, asking[-1], behind, asked), "an answer or a question")
        assert statuses(asking[-1].recv(65536)) == [503]
        asked = len(behind.requests)
        other = clients.enter_context(_asks(serving, "127.0.0.9", "other"))
        wait_for(partial(_is_judged, other, behind, asked), "an answer or a question")
        assert len(behind.requests) == asked + 1
