"""The way to the gateway and its table, within this process."""

import re
import socket
from collections.abc import Iterator

import pytest
import trio
import trio.testing

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
        assert {route.auth is Auth.OPERATOR for route in routes} == {one.is_proved}, one


def test_only_decisions_and_the_end_of_a_session_change_anything() -> None:
    asked = {one.path.pattern.rpartition("/")[2] for one in ENDPOINTS if one.method != "GET"}
    assert asked == {"approve", "deny", "revoke", "explain"}


async def test_a_gateway_whose_name_can_not_be_looked_up_is_not_reached() -> None:
    endpoint = endpoint_for("GET", "/v1/actions")
    assert endpoint is not None
    answer = await Forwarder("http://a..b").forward(endpoint, Request("GET", "/v1/actions"))
    assert (answer.status, answer.body) == (502, b'{"error":"gateway_unreachable"}')


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """The socket of a gateway that says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


async def asked(silent: socket.socket) -> trio.SocketStream:
    """The connection on which a whole request has come."""
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(silent))
    stream = await listener.accept()
    request = b""
    while not request.endswith(b"\r\n\r\n"):
        request += await stream.receive_some()
    return stream


async def test_a_gateway_that_says_nothing_ends_with_the_deadline_of_the_row(
    silent: socket.socket, mock_clock: trio.testing.MockClock
) -> None:
    """Time stands still while the request is on its way."""
    endpoint = endpoint_for("GET", SLOW)
    assert endpoint is not None
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    answers: list[tuple[int, float]] = []
    begun = trio.current_time()

    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            answer = await Forwarder(url).forward(endpoint, Request("GET", SLOW, headers=HEADERS))
            answers.append((answer.status, trio.current_time() - begun))
            nursery.cancel_scope.cancel()

        nursery.start_soon(ask)
        async with await asked(silent):
            mock_clock.jump(VERIFY_SECONDS - 0.5)
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(0.5)
            await trio.sleep_forever()
    assert answers == [(504, VERIFY_SECONDS)]
