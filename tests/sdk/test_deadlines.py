"""How the blocking client connects: every address of a name, within one deadline."""

import socket
from typing import Any

import pytest
from gateway_client import AgentClient, Unreachable
from gateway_client.running.deadlines import _dialled

from tests.support.names import SERVICE, resolve_to


def test_addresses_that_do_not_answer_leave_time_for_those_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "127.0.0.9", "::1", "127.0.0.1")
    given: list[tuple[str, float]] = []

    def connects(address: Any, timeout: float) -> socket.socket:
        given.append((address[0], timeout))
        if address[0] != "127.0.0.1":
            raise TimeoutError("timed out")
        return socket.socket()

    monkeypatch.setattr(socket, "create_connection", connects)
    with _dialled(SERVICE, 1, 300.0):
        pass
    assert [address for address, _ in given] == ["127.0.0.9", "::1", "127.0.0.1"]
    assert [round(seconds / 50) for _, seconds in given] == [2, 3, 6]


def test_a_name_none_of_whose_addresses_answers_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "127.0.0.9", "127.0.0.8")
    with pytest.raises(ConnectionRefusedError):
        _dialled(SERVICE, 9, 60.0)


@pytest.mark.parametrize("host", ["a..b", "x" * 70], ids=["empty label", "long label"])
def test_a_name_that_no_host_can_have_is_unreachable(host: str) -> None:
    with AgentClient(f"http://{host}:1") as agent, pytest.raises(Unreachable) as refused:
        agent.health()
    assert (refused.value.code, refused.value.was_sent) == ("unreachable", False)
