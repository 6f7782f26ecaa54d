"""Calls at `/mcp` that their client gives up: they keep nothing at the edge, run once, and leave their evidence."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import SECONDS
from tests.support.gateway import Gateway, wait_for
from tests.support.mcp_over_http import ACCEPT, HANDSHAKE, MCP, MODERN, access_token, asked, call_of, tool_called
from tests.support.upstream import Upstream

HELD = {"to": "acct-7", "amount_cents": 26_300, "currency": "EUR"}
ONE_AT_A_TIME = "[limits]\nmax_connections_per_address = 1\n"


@pytest.fixture(scope="module")
def serving(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    folder: Path = tmp_path_factory.mktemp("cancelled")
    with edge(edge_config(folder, gate.ready["client_socket"], MCP)) as running:
        yield running


@contextmanager
def asking(serving: Edge, shown: str, request: dict[str, Any]) -> Iterator[socket.socket]:
    """A client that has sent its request, and closes its connection at the end."""
    body = json.dumps(request["json"]).encode()
    headers = request["headers"] | {"Host": "x", "Authorization": f"Bearer {shown}", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", serving.port), SECONDS) as sock:
        sock.sendall(f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body)
        yield sock


def is_sent(up: Upstream, path: str) -> bool:
    return any(one.path == f"/{path}" for one in up.seen)


@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
def test_a_call_whose_client_has_gone_leaves_its_place_at_once_and_its_receipt(
    gate: Gateway, up: Upstream, tmp_path: Path, revision: str
) -> None:
    shown, path = access_token(jti=f"gone {revision}"), f"wait/gone-{revision}"
    with edge(edge_config(tmp_path, gate.ready["client_socket"], MCP + ONE_AT_A_TIME)) as serving:
        with asking(serving, shown, call_of("http_post", {"path": path, "message": "a"}, revision)):
            wait_for(lambda: is_sent(up, path), "the effect")

        def recent() -> dict[str, Any] | None:
            """The one call of this token, once the edge has a place for the question."""
            try:
                (call,) = tool_called(serving, shown, "gateway_recent_calls", {})["calls"]
            except (httpx.TransportError, AssertionError):
                return None
            return dict(call)

        assert wait_for(recent, "a place for another request")["state"] == "running"
        up.held(f"gone-{revision}").set()
        ended = wait_for(lambda: call if (call := recent()) and "receipt_id" in call else None, "the receipt")
    assert ended["state"] == "executed"
    assert [one.path for one in up.seen].count(f"/{path}") == 1


def test_a_held_call_whose_client_has_gone_keeps_its_caller_and_its_outcome_can_be_asked_for(
    serving: Edge, gate: Gateway
) -> None:
    shown, operator = access_token(jti="gone, held"), gate.operator()

    def pending() -> list[dict[str, Any]]:
        return list(operator.get("/v1/approvals?status=pending").json()["approvals"])

    with asking(serving, shown, call_of("payment_transfer", HELD)):
        (held,) = wait_for(pending, "the hold")
        held_call = {"approval_id": held["approval_id"]}
        wait_for(
            lambda: "error" not in tool_called(serving, shown, "gateway_approval_status", held_call), "its waiting"
        )
    for number in range(16):  # as many as are kept of a subject: others make room, though they were used later
        assert asked(serving, access_token(jti=f"other {number}")).status_code == 200
    assert tool_called(serving, shown, "gateway_approval_status", held_call)["decision"] == "pending_approval"
    assert operator.post(f"/v1/approvals/{held['approval_id']}/approve").status_code == 200
    told = tool_called(serving, shown, "gateway_approval_status", held_call | {"wait_seconds": SECONDS})
    assert told["decision"] == "executed"


def test_a_notification_ends_no_call_as_another_client_may_have_one_of_the_same_id(serving: Edge, up: Upstream) -> None:
    shown, told = access_token(jti="notified"), []
    wanted = {"path": "wait/notified", "message": "a"}
    calling = threading.Thread(target=lambda: told.append(tool_called(serving, shown, "http_post", wanted)))
    calling.start()
    wait_for(lambda: is_sent(up, "wait/notified"), "the effect")
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    headers = ACCEPT | {"Authorization": f"Bearer {shown}", "MCP-Protocol-Version": HANDSHAKE}
    assert serving.client().post("/mcp", json=cancelled, headers=headers).status_code == 202
    up.held("notified").set()
    calling.join()
    assert told[0]["decision"] == "executed"
