"""The bounds of all connections, by trio's clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import trio
from trio.testing import MockClock, open_stream_to_socket_listener

from edge.connection import EdgeConnection
from edge.connections import (
    FIRST_SECONDS,
    IDLE_SECONDS,
    LAST_REQUESTS_SECONDS,
    MIN_QUIET_SECONDS,
    EdgeConnections,
    group_of,
)
from edge.held import MAX_HELD_OF_ADDRESS, MIN_WAIT_SECONDS, AnswerBytes, HeldBytes, WholeAnswer
from ipc.configuration.edge_settings import EdgeLimitSettings


@asynccontextmanager
async def admitted(connections: EdgeConnections) -> AsyncIterator[EdgeConnection]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener, await open_stream_to_socket_listener(listener), await listener.accept() as stream:
        connection = connections.admit(stream)
        assert connection is not None
        yield connection


def opened(connections: EdgeConnections, address: str) -> EdgeConnection | None:
    """A connection of this address, without a client."""
    stream = trio.testing.memory_stream_pair()[0]
    stream.socket = SimpleNamespace(getpeername=lambda: (address, 1), close=lambda: None)  # type: ignore[attr-defined]
    return connections.admit(stream)  # type: ignore[arg-type]


def _some(connections: EdgeConnections, address: str, count: int) -> list[EdgeConnection]:
    made = [opened(connections, address) for _ in range(count)]
    assert None not in made
    return [one for one in made if one is not None]


async def test_at_the_bound_the_quietest_connection_of_the_address_with_most_makes_room(
    autojump_clock: MockClock,
) -> None:
    connections = EdgeConnections(EdgeLimitSettings(max_connections=7))
    made = []
    for number in (1, 2, 2, 2, 3, 3, 3):
        made += _some(connections, f"127.0.0.{number}", 1)
        with made[-1].whole_request():
            await trio.sleep(0.01)
    with made[1].whole_request():
        assert opened(connections, "127.0.0.4") is not None
        assert [made.index(one) for one in made if one.scope.cancel_called] == [2]


async def test_an_address_with_most_makes_room_for_itself_only_once_its_connections_are_quiet(
    autojump_clock: MockClock,
) -> None:
    connections = EdgeConnections(EdgeLimitSettings(max_connections=4))
    _some(connections, "127.0.0.1", 2)
    assert opened(connections, "127.0.0.1") is None
    await trio.sleep(MIN_QUIET_SECONDS)
    assert opened(connections, "127.0.0.1") is not None


async def test_connections_that_never_asked_take_half_of_the_room(autojump_clock: MockClock) -> None:
    connections = EdgeConnections(EdgeLimitSettings(max_connections=8))
    asked = _some(connections, "127.0.0.1", 3)
    for one in asked:
        with one.whole_request():
            await trio.sleep(0.01)
    fresh = [opened(connections, f"127.0.1.{number}") for number in range(40)]
    assert not any(one.scope.cancel_called for one in asked)
    assert [one is not None and not one.scope.cancel_called for one in fresh].count(True) == 4


async def test_a_connection_that_never_asks_is_cut_early(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    connections = EdgeConnections(EdgeLimitSettings())
    nursery.start_soon(connections.watch)
    fresh, asked = _some(connections, "127.0.0.1", 2)
    with asked.request(), asked.whole_request():
        pass
    await trio.sleep(FIRST_SECONDS + 1)
    assert (fresh.scope.cancel_called, asked.scope.cancel_called) == (True, False)


def test_an_address_without_a_request_may_have_one_though_others_have_all() -> None:
    connections = EdgeConnections(EdgeLimitSettings(max_connections=2))
    assert [connections.begin_request(one) for one in ("a", "a", "a", "b", "b")] == [True, True, False, True, False]


async def test_a_connection_without_a_request_is_cut_in_the_end(
    autojump_clock: MockClock,
    nursery: trio.Nursery,
) -> None:
    connections = EdgeConnections(EdgeLimitSettings())
    nursery.start_soon(connections.watch)
    async with admitted(connections) as idle, admitted(connections) as busy:
        for one in (idle, busy):
            with one.whole_request():
                pass
        with busy.request():
            await trio.sleep(IDLE_SECONDS - 1)
            assert not idle.scope.cancel_called
            await trio.sleep(2)
            assert idle.scope.cancel_called
            assert not busy.scope.cancel_called


async def test_a_request_that_ends_after_the_signal_leaves_no_connection_behind(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    connections = EdgeConnections(EdgeLimitSettings())
    nursery.start_soon(connections.watch)
    async with admitted(connections) as busy:
        with busy.request():
            connections.drain()
            await trio.sleep(2)
            assert not busy.scope.cancel_called
        await trio.sleep(2)
        assert busy.scope.cancel_called


async def test_an_edge_that_ends_refuses_requests_only_once_their_answers_could_be_cut(
    autojump_clock: MockClock,
) -> None:
    connections = EdgeConnections(EdgeLimitSettings())
    connections.drain()
    await trio.sleep(LAST_REQUESTS_SECONDS - 1)
    assert not connections.refuses
    await trio.sleep(1)
    assert connections.refuses


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


async def test_a_client_that_is_still_taking_its_answer_is_not_cut_for_another(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    memory = AnswerBytes()
    taken = WholeAnswer(memory, "a", pytest.fail)
    await taken.keep(b"x" * MAX_HELD_OF_ADDRESS)
    taken.wait()
    nursery.start_soon(WholeAnswer(memory, "a", pytest.fail).keep, b"x")
    await trio.sleep(MIN_WAIT_SECONDS / 2)
    taken.release()


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
