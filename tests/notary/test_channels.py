"""The notary's end of a front's channel: how much is taken at once, and why a front counts as gone."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from ipc.channel.framing import encode_frame
from ipc.limits import MAX_NOTARY_FRAME, MAX_OPERATIONS
from ipc.messages.notary_frames import FrontFacts, NumberedOperation
from ipc.operations.holds import GetHold
from ipc.operations.leases import ReadEpoch
from notary.channels import READ_BYTES, FrontChannel, FrontGone
from tests.support.notary_thread import LIMITS

ASKED = ReadEpoch()
FIRST = FrontFacts(0, 0.0, (), "{}", "{}", {})
WORD = FrontFacts(1, 0.0, (), "chat" * 1000, "{}", {})


def frames(count: int, operation: ReadEpoch | GetHold = ASKED) -> bytes:
    return b"".join(
        encode_frame(NumberedOperation(number, operation), MAX_NOTARY_FRAME) for number in range(1, count + 1)
    )


class Pair:
    """A front's socket, and what the notary has of it."""

    def __init__(self) -> None:
        self.front, notarys = socket.socketpair()
        for one in (self.front, notarys):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * READ_BYTES)
        self.front.setblocking(False)
        self.channel = FrontChannel("front-1", notarys, replace(LIMITS, unsent_bytes=32 * READ_BYTES))

    def fill(self) -> None:
        """Answers until some wait for the socket."""
        self.channel.queue(FIRST)
        while not self.channel.wants_writing:
            self.channel.queue(WORD)
            self.channel.flush()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.front.close()
    made.channel.close()


def test_as_much_is_taken_at_once_as_one_unit_performs_and_no_more(pair: Pair) -> None:
    pair.front.send(frames(MAX_OPERATIONS - 1))
    pair.channel.receive()
    assert len(pair.channel.tasks) == MAX_OPERATIONS - 1
    assert pair.channel.wants_reading
    pair.front.send(frames(1))
    pair.channel.receive()
    assert not pair.channel.wants_reading
    pair.channel.tasks.popleft()
    assert pair.channel.wants_reading


def test_a_message_of_several_reads_is_taken_whole(pair: Pair) -> None:
    large = GetHold("x" * (2 * READ_BYTES))
    data = frames(1, large)
    assert pair.front.send(data) == len(data)
    pair.channel.receive()
    assert [task.operation for task in pair.channel.tasks] == [large]


def test_requests_beyond_one_unit_stay_with_the_front(pair: Pair) -> None:
    data = frames(3 * READ_BYTES // len(frames(1)))
    assert pair.front.send(data) == len(data)
    pair.channel.receive()
    taken = len(pair.channel.tasks)
    assert MAX_OPERATIONS <= taken <= 2 * READ_BYTES // len(frames(1)), "one read, and what was begun with it"


def test_a_front_that_takes_no_answers_is_not_read_from(pair: Pair) -> None:
    assert pair.channel.wants_reading
    pair.fill()
    assert not pair.channel.wants_reading
    while pair.channel.wants_writing:
        with suppress(BlockingIOError):
            pair.front.recv(READ_BYTES)
        pair.channel.flush()
    assert pair.channel.wants_reading


def test_why_a_front_is_gone_is_said(pair: Pair) -> None:
    pair.channel.queue(FIRST)
    pair.channel.flush()
    pair.front.close()  # with something that it has not read
    with pytest.raises(FrontGone, match="Connection reset by peer"):
        pair.channel.receive()
    pair.channel.queue(WORD)
    with pytest.raises(FrontGone, match="Broken pipe"):
        pair.channel.flush()


@pytest.mark.parametrize(("data", "why"), [(b"", "closed its channel$"), (b"\0\0\0", "inside a frame$")])
def test_a_front_that_leaves_is_gone_whole_or_in_the_middle_of_a_word(pair: Pair, data: bytes, why: str) -> None:
    pair.front.send(data)
    pair.front.close()
    with pytest.raises(FrontGone, match=why):
        for _ in range(2):
            pair.channel.receive()
