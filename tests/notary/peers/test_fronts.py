"""The notary's ends of the fronts' channels: how much is taken at once, in which order, and the end of one."""

import select
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ipc.channel.framing import encode_frame
from ipc.limits import MAX_NOTARY_FRAME, MAX_OPERATIONS
from ipc.messages.delivering import Woken
from ipc.messages.notary_frames import Answered, FrontFacts, NumberedOperation
from ipc.operations.holds import GetHold
from ipc.operations.leases import ReadEpoch
from notary.opening import open_state
from notary.peers.channels import READ_BYTES, FrontChannel, FrontGone
from notary.peers.fronts import Fronts
from notary.state import NotaryState
from notary.units.tasks import Task, TaskOutcome
from tests.notary.running import HandClock, settings_in
from tests.support.logs import capture_logs
from tests.support.notary_thread import LIMITS

FIRST = FrontFacts(0, 0.0, (), "{}", "{}", {})
WORD = FrontFacts(1, 0.0, (), "chat" * 1000, "{}", {})
NOTHING = msgspec.Raw(msgspec.msgpack.encode(None))


def asked(count: int, first: int = 1) -> bytes:
    return b"".join(
        encode_frame(NumberedOperation(number, ReadEpoch()), MAX_NOTARY_FRAME) for number in range(first, first + count)
    )


class Several:
    """Fronts without a notary around them."""

    def __init__(self, folder: Path) -> None:
        self.state: NotaryState = open_state(settings_in(folder), HandClock(), limits=LIMITS)[0]
        self.poll, self.gone, self.detached = select.epoll(), list[str](), list[str]()
        self.fronts = Fronts(self.state, self.poll, self.gone.append, self.detached.append)
        self.ends: dict[str, socket.socket] = {}
        self.descriptors: dict[str, int] = {}

    def attach(self, front_id: str) -> socket.socket:
        self.ends[front_id], notarys = socket.socketpair()
        self.descriptors[front_id] = notarys.fileno()
        for end in (self.ends[front_id], notarys):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.fronts.attach(front_id, notarys, FIRST)
        return self.ends[front_id]

    def attach_deliverer(self, deliverer_id: str) -> socket.socket:
        self.ends[deliverer_id], notarys = socket.socketpair()
        self.fronts.attach_deliverer(deliverer_id, notarys, 0.0)
        return self.ends[deliverer_id]

    def serve(self) -> list[int]:
        """Serve each event that epoll reports, once; return the events."""
        events = self.poll.poll(0)
        assert all(self.fronts.serve(*one) for one in events)
        return [event for _, event in events]

    def close(self) -> None:
        self.fronts.close()
        self.poll.close()
        self.state.database.close()
        for end in self.ends.values():
            end.close()


@pytest.fixture
def several(tmp_path: Path) -> Iterator[Several]:
    made = Several(tmp_path)
    yield made
    made.close()


def test_a_front_that_asked_for_a_whole_unit_is_not_looked_at_until_that_is_performed(several: Several) -> None:
    front = several.attach("front-1")
    assert not several.fronts.have_tasks
    front.sendall(asked(MAX_OPERATIONS))
    assert several.serve() == [select.EPOLLIN]
    assert several.fronts.have_tasks
    front.sendall(asked(3, MAX_OPERATIONS + 1))
    assert several.serve() == [], "nobody is woken for what can't be taken"
    assert several.fronts.serve(several.descriptors["front-1"], select.EPOLLIN)
    tasks = list(several.fronts.gathered())
    assert [task.number for task in tasks] == list(range(1, MAX_OPERATIONS + 1))
    assert not several.fronts.have_tasks
    several.fronts.say({"front-1": [Answered(1, NOTHING)]})
    assert several.serve() == [select.EPOLLIN]
    assert [task.number for task in several.fronts.gathered()] == [MAX_OPERATIONS + number for number in (1, 2, 3)]
    assert several.serve() == []


def test_another_front_comes_first_with_each_unit(several: Several) -> None:
    first = []
    for number in range(1, 5):
        for front_id in ("front-1", "front-2"):
            if front_id not in several.ends:
                several.attach(front_id)
            several.ends[front_id].sendall(asked(1, number))
        several.serve()
        first.append(next(iter(list(several.fronts.gathered()))).front_id)
    assert first in (["front-1", "front-2"] * 2, ["front-2", "front-1"] * 2)


def test_a_front_that_does_not_take_its_answers_is_not_read_until_it_does(several: Several) -> None:
    front = several.attach("front-1")
    (channel,) = several.fronts._channels.values()
    while not channel.wants_writing:
        several.fronts.say_to_all(WORD)
    task = Task("front-1", 1, ReadEpoch())
    several.fronts.note_unheard(task, TaskOutcome(7))
    several.fronts.note_unheard(Task("front-2", 1, ReadEpoch()), TaskOutcome(8))
    assert several.fronts.unheard() == {("front-1", 1): TaskOutcome(7)}
    front.sendall(asked(1))
    assert several.serve() == [], "neither is there room, nor may anything be read"
    while several.fronts.unheard():
        front.recv(1 << 20)
        several.serve()
    assert several.serve() == [select.EPOLLIN]
    assert [task.number for task in several.fronts.gathered()] == [1]


def test_the_end_of_a_channel_is_logged_as_an_error_if_the_front_is_at_fault(several: Several) -> None:
    for front_id, data in (("leaves", b""), ("breaks", b"GET / HTTP/1.1\r\n\r\n")):
        front = several.attach(front_id)
        assert several.state.fronts == {front_id}
        front.sendall(data)
        front.shutdown(socket.SHUT_WR)
        with capture_logs() as lines:
            several.serve()
        (line,) = lines
        level = "error" if data else "info"
        assert (line["event"], line["front"], line["log_level"]) == ("a front's channel ended", front_id, level)
        assert line["reason"].startswith("broke the protocol: " if data else "closed its channel")
        assert several.state.fronts == set()
    assert several.gone == several.detached == ["leaves", "breaks"]


def test_another_channel_of_the_same_name_takes_the_place_of_the_one_before(several: Several) -> None:
    before = several.attach("front-1")
    several.attach("front-2")
    with capture_logs() as lines:
        several.attach("front-1")
    assert [(line["front"], line["reason"], line["log_level"]) for line in lines] == [
        ("front-1", "has another one", "info")
    ]
    assert (several.gone, several.detached) == (["front-1"], [])
    assert several.state.fronts == {"front-1", "front-2"}
    while before.recv(1 << 20):
        pass
    before.close()


def test_there_is_one_deliverer_apart_from_fronts_which_is_notified_of_deliveries(several: Several) -> None:
    front, before = several.attach("front-1"), several.attach_deliverer("deliverer-1")
    with capture_logs() as lines:
        after = several.attach_deliverer("deliverer-2")
    assert [(line["event"], line["front"], line["reason"]) for line in lines] == [
        ("the deliverer's channel ended", "deliverer-1", "has a successor")
    ]
    assert several.state.fronts == {"front-1"}
    for end in (front, after):
        end.setblocking(False)
        end.recv(1 << 20)
    several.fronts.wake(())
    several.fronts.wake({"chat"})
    assert after.recv(1 << 20) == encode_frame(Woken(("chat",)), MAX_NOTARY_FRAME)
    several.fronts.say_to_all(WORD)
    for silent in (after, before):
        silent.setblocking(False)
    with pytest.raises(BlockingIOError):
        after.recv(1)
    assert front.recv(1 << 20) == encode_frame(WORD, MAX_NOTARY_FRAME)
    while before.recv(1 << 20):
        pass


ASKED = ReadEpoch()


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
