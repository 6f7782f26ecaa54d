"""The bounds of all connections, by trio's clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, open_stream_to_socket_listener

from edge.connections import IDLE_SECONDS, EdgeConnection, EdgeConnections, group_of
from edge.held import MAX_HELD_OF_ADDRESS, AnswerBytes, HeldBytes, WholeAnswer
from ipc.edge_settings import EdgeLimitSettings


@asynccontextmanager
async def admitted(connections: EdgeConnections) -> AsyncIterator[EdgeConnection]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener, await open_stream_to_socket_listener(listener), await listener.accept() as stream:
        connection = connections.admit(stream)
        assert connection is not None
        yield connection


async def test_a_connection_without_a_request_is_cut_in_the_end(
    autojump_clock: MockClock,
    nursery: trio.Nursery,
) -> None:
    connections = EdgeConnections(EdgeLimitSettings())
    nursery.start_soon(connections.watch)
    async with admitted(connections) as idle, admitted(connections) as busy:
        with busy.request():
            await trio.sleep(IDLE_SECONDS - 1)
            assert not idle.scope.cancel_called
            await trio.sleep(2)
            assert idle.scope.cancel_called
            assert not busy.scope.cancel_called


def test_bytes_of_an_address_have_a_bound_and_leave_room_for_others() -> None:
    held = HeldBytes()
    assert held.hold("a", MAX_HELD_OF_ADDRESS)
    assert not held.hold("a", 1)
    assert held.hold("b", MAX_HELD_OF_ADDRESS)
    held.let_go("a", MAX_HELD_OF_ADDRESS)
    assert held.hold("a", 1)


async def _waiting(memory: AnswerBytes, cut: list[str], address: str, size: int) -> None:
    """Keep an answer that its client does not take."""
    answer = WholeAnswer(memory, address, lambda: cut.append(f"{address} {size}"))
    await answer.keep(b"x" * size)
    answer.wait()


async def test_of_answers_without_room_the_one_that_has_waited_longest_is_cut(autojump_clock: MockClock) -> None:
    cut: list[str] = []
    memory, half = AnswerBytes(), MAX_HELD_OF_ADDRESS // 2
    for address, size in (("other", half), ("slow", half - 1), ("slow", half), ("slow", half - 2)):
        await _waiting(memory, cut, address, size)
    assert cut == [f"slow {half - 1}"]


async def test_where_all_memory_is_full_the_address_that_has_most_makes_room(autojump_clock: MockClock) -> None:
    cut: list[str] = []
    memory = AnswerBytes()
    for address, less in (("a", 2), ("b", 0), ("c", 1), ("d", 1)):
        await _waiting(memory, cut, address, MAX_HELD_OF_ADDRESS - less)
    await _waiting(memory, cut, "newcomer", 5)
    assert cut == [f"b {MAX_HELD_OF_ADDRESS}"]


async def test_answers_that_are_being_read_leave_the_next_without_room(autojump_clock: MockClock) -> None:
    memory = AnswerBytes()
    await WholeAnswer(memory, "a", pytest.fail).keep(b"x" * MAX_HELD_OF_ADDRESS)
    with pytest.raises(trio.TooSlowError):
        await WholeAnswer(memory, "a", pytest.fail).keep(b"x")


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_an_ipv6_client_counts_by_its_network(host: str, group: str) -> None:
    assert group_of(host) == group
