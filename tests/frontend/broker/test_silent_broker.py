"""Many questions to one broker that fails: each ends with an error of its own, and the supervisor gets one request."""

import socket
from collections import Counter

import trio
import trio.testing

from frontend.broker.client import BrokerClient, BrokerSilent
from ipc.configuration.secret_ways import AsToken

MANY = 600
"""More than the socket takes, and than the front's queue to the supervisor."""
PID = 7
WAY = AsToken("https://tokens.test/" + "t" * 200, "client")


class Supply:
    """The supervisor, played: it hears."""

    def __init__(self) -> None:
        self.replaced: Counter[int] = Counter()

    def need_broker(self) -> None:
        """A broker is attached already."""

    def replace_broker(self, pid: int, reason: str) -> None:
        assert reason
        self.replaced[pid] += 1


async def ask_many(client: BrokerClient, silences: list[str], seconds: float) -> None:
    async def ask(number: int) -> None:
        try:
            await client.token(WAY, "s" * 300, principal=f"agent {number}", seconds=seconds)
        except BrokerSilent as silent:
            silences.append(str(silent))

    async with trio.open_nursery() as asking:
        for number in range(MANY):
            asking.start_soon(ask, number)


async def test_questions_that_wait_to_be_sent_end_as_silences_when_the_broker_breaks_the_protocol(
    nursery: trio.Nursery, mock_clock: trio.testing.MockClock
) -> None:
    supply, silences = Supply(), list[str]()
    client, (ours, brokers) = BrokerClient(supply), socket.socketpair()
    await nursery.start(client.run)
    client.attach(ours, PID)
    with brokers:
        async with trio.open_nursery() as asking:
            asking.start_soon(ask_many, client, silences, 600.0)
            await trio.testing.wait_all_tasks_blocked()  # it reads nothing: one question waits in the middle
            brokers.send(b"\0\0\0\1\xff")
    assert len(silences) == MANY
    assert supply.replaced == {PID: 1}
    nursery.cancel_scope.cancel()


async def test_a_broker_that_is_silent_is_replaced_by_one_request_for_all_its_questions(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    supply, silences = Supply(), list[str]()
    client, (ours, brokers) = BrokerClient(supply), socket.socketpair()
    await nursery.start(client.run)
    client.attach(ours, PID)
    with brokers:
        await ask_many(client, silences, 5.0)
        assert len(silences) == MANY
        assert supply.replaced == {PID: 1}
        await ask_many(client, silences, 5.0)
        assert supply.replaced == {PID: 2}, "it was not heard, perhaps"
    nursery.cancel_scope.cancel()
