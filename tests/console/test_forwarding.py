"""The way to the gateway and its table, within this process."""

import re
import socket
from collections.abc import Callable

import pytest
import trio

from console.endpoints import ENDPOINTS, VERIFY_SECONDS, endpoint_for
from console.forwarding import Forwarder
from frontend.api.route import Auth
from frontend.api.routes import ROUTES
from frontend.http.requests import Request

HEADERS = [("authorization", f"DPoP key-ann-{'0' * 32}"), ("dpop", "a.b.c")]
SLOW = "/v1/audit/verify"


def test_every_row_is_an_endpoint_of_the_admin_interface_with_the_same_authentication() -> None:
    for one in ENDPOINTS:
        routes = [
            route for route in ROUTES
            if route.method == one.method and "admin" in route.sockets
            and one.path.fullmatch(re.sub(r"\{\w+\}", "x", route.path))
        ]  # fmt: skip
        assert [route.auth is Auth.OPERATOR for route in routes] == [one.is_proved], one


def test_only_decisions_and_the_end_of_a_session_change_anything() -> None:
    asked = {one.path.pattern.rpartition("/")[2] for one in ENDPOINTS if one.method != "GET"}
    assert asked == {"approve", "deny", "revoke", "explain"}


@pytest.fixture
def silent() -> "tuple[socket.socket, str]":
    """A gateway that accepts and says nothing."""
    sock = socket.create_server(("127.0.0.1", 0))
    return sock, f"http://127.0.0.1:{sock.getsockname()[1]}"


async def test_a_gateway_that_says_nothing_ends_with_the_deadline_of_the_row(
    silent: tuple[socket.socket, str], autojump_clock: Callable[[], float]
) -> None:
    endpoint = endpoint_for("GET", SLOW)
    assert endpoint is not None
    begun = trio.current_time()
    answer = await Forwarder(silent[1]).forward(endpoint, Request("GET", SLOW, headers=HEADERS))
    assert (answer.status, trio.current_time() - begun) == (504, VERIFY_SECONDS)
    silent[0].close()
