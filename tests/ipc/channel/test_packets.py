"""The channel of whole packets over real sockets: what arrives, for any reader and writer, and what is refused."""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import TypeVar

import msgspec
import pytest

from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.packets import PACKET_BYTES, PacketChannel, packet_pair
from ipc.channel.protocol_states import ProtocolError
from ipc.messages.attesting import NoPermit, NotaryToWorker, Permit, Tied, WorkerToNotary
from ipc.messages.calling import Result, Verification
from ipc.messages.message import Message
from ipc.protocols.worker import NOTARY_TO_WORKER, WORKER_TO_NOTARY

CAP = 500_000
WORD = Permit("c1", "sha256:00", is_approved=False, settled=("c0",))

M = TypeVar("M", bound=Message)

Ends = tuple[socket.socket, socket.socket]
"""The notary's and the worker's."""
Notary = PacketChannel[Result]
Worker = PacketChannel[NotaryToWorker]


def notary_end(sock: socket.socket, cap: int = CAP) -> Notary:
    return PacketChannel(sock, WorkerToNotary, table=WORKER_TO_NOTARY, cap_in=cap, cap_out=cap)


def worker_end(sock: socket.socket) -> Worker:
    return PacketChannel(sock, NotaryToWorker, table=NOTARY_TO_WORKER, cap_in=CAP, cap_out=CAP)


def result_of(call_id: str = "c1", output: str = "{}") -> Result:
    return Result(call_id, "success", output, None, Verification("skipped"), (), 1, 2, 3)


def sized(size: int) -> Result:
    """A result whose body has so many bytes, about half of them its output."""
    half = size // 2
    base = len(msgspec.msgpack.encode(result_of("x" * (half - 200), "x" * half))) + 200
    result = result_of("x" * (half + size - base), "x" * half)
    assert len(msgspec.msgpack.encode(result)) == size
    return result


@pytest.fixture
def ends() -> Iterator[Ends]:
    notary, worker = packet_pair()
    with notary, worker:
        for sock in (notary, worker):  # as in a worker: a timeout of Python's would wait for an almost empty socket
            for which in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                sock.setsockopt(socket.SOL_SOCKET, which, struct.pack("ll", 20, 0))
        yield notary, worker


def whole(channel: PacketChannel[M]) -> M:
    """The next message, in however many packets it comes."""
    while (message := channel.receive()) is None:
        pass
    return message


def is_empty(sock: socket.socket) -> bool:
    try:
        sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    return False


def test_each_message_arrives_as_one_packet_in_order(ends: Ends) -> None:
    notary, worker = notary_end(ends[0]), worker_end(ends[1])
    sent = [Tied(), WORD, NoPermit("c2"), Tied()]
    for message in sent:
        notary.send(message)
    assert [worker.receive() for _ in sent] == sent
    assert is_empty(ends[1])
    worker.send(result_of())
    assert notary.receive() == result_of()


@pytest.mark.parametrize(
    ("size", "packets"), [(PACKET_BYTES, 1), (PACKET_BYTES + 1, 2), (2 * PACKET_BYTES, 2), (2 * PACKET_BYTES + 1, 3)]
)
def test_a_message_takes_no_more_packets_than_it_needs(ends: Ends, size: int, packets: int) -> None:
    notary, worker = notary_end(ends[0]), worker_end(ends[1])
    for _ in range(2):
        worker.send(sized(size))
        assert [notary.receive() for _ in range(packets)] == [None] * (packets - 1) + [sized(size)]
    assert is_empty(ends[0])


def test_a_message_larger_than_the_socket_holds_arrives_whole(ends: Ends) -> None:
    cap = 8_000_000
    notary = notary_end(ends[0], cap)
    worker: Worker = PacketChannel(ends[1], NotaryToWorker, table=NOTARY_TO_WORKER, cap_in=cap, cap_out=cap)
    large = result_of(output="x" * 5_000_000)
    sending = threading.Thread(target=worker.send, args=(large,), daemon=True)
    sending.start()
    assert whole(notary) == large
    sending.join(60)
    assert not sending.is_alive()


def test_a_reader_that_follows_one_in_the_middle_of_a_message_skips_its_rest(ends: Ends) -> None:
    first, worker = notary_end(ends[0]), worker_end(ends[1])
    worker.send(sized(3 * PACKET_BYTES))
    worker.send(result_of("c2"))
    assert first.receive() is None
    second = notary_end(ends[0])
    assert [second.receive() for _ in range(3)] == [None, None, result_of("c2")]


def test_half_a_message_of_a_sender_that_died_is_skipped(ends: Ends) -> None:
    body = msgspec.msgpack.encode(sized(3 * PACKET_BYTES))
    notary, worker = notary_end(ends[0]), worker_end(ends[1])
    ends[1].send(b"\x01" + body[:PACKET_BYTES])
    ends[1].send(b"\x00" + body[PACKET_BYTES : 2 * PACKET_BYTES])
    assert [notary.receive(), notary.receive()] == [None, None]
    worker.send(sized(2 * PACKET_BYTES))
    worker.send(result_of("c2"))
    assert [notary.receive() for _ in range(3)] == [None, sized(2 * PACKET_BYTES), result_of("c2")]


def test_a_message_is_read_once_by_two_processes_at_the_same_end(ends: Ends) -> None:
    notary, worker = notary_end(ends[0]), worker_end(ends[1])
    notary.send(Tied())
    for name in ("c1", "c2", "c3"):
        notary.send(Permit(name, "sha256:00", is_approved=False))
    assert worker.receive() == Tied()
    with ends[1].dup() as others:
        assert b"c1" in others.recv(PACKET_BYTES + 1)
    assert worker.receive() == Permit("c2", "sha256:00", is_approved=False)
    with ends[1].dup() as others:
        assert b"c3" in others.recv(PACKET_BYTES + 1)
    assert is_empty(ends[1])
    with pytest.raises(BlockingIOError):
        worker.receive(socket.MSG_DONTWAIT)


def test_two_ends_that_take_at_once_take_every_message_once(ends: Ends) -> None:
    count, seed = 2000, random.randrange(2**32)
    notary, worker = notary_end(ends[0]), worker_end(ends[1])
    notary.send(Tied())
    worker.receive()
    kept, taken = [], []
    others = ends[1].dup()
    is_over = threading.Event()

    def take_back() -> None:
        dice = random.Random(seed)
        while not is_over.is_set():
            for _ in range(dice.randrange(4)):
                try:
                    packet = others.recv(PACKET_BYTES + 1, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                taken.append(msgspec.msgpack.decode(packet[1:], type=NoPermit).call_id)

    def read() -> None:
        while isinstance(message := whole(worker), NoPermit):
            kept.append(message.call_id)

    threads = [threading.Thread(target=run, daemon=True) for run in (take_back, read)]
    for thread in threads:
        thread.start()
    for number in range(count):
        notary.send(NoPermit(str(number)))
    deadline = time.monotonic() + 60
    while len(kept) + len(taken) < count and all(thread.is_alive() for thread in threads):
        assert time.monotonic() < deadline, f"seed {seed}"
        time.sleep(0.002)
    is_over.set()
    threads[0].join(60)
    notary.send(Tied())
    threads[1].join(60)
    others.close()
    assert sorted(kept + taken, key=int) == [str(number) for number in range(count)], f"seed {seed}"
    assert [sorted(part, key=int) for part in (kept, taken)] == [kept, taken], f"seed {seed}"


def test_a_message_over_the_cap_is_not_sent_and_moves_nothing(ends: Ends) -> None:
    notary, worker = notary_end(ends[0]), worker_end(ends[1])
    with pytest.raises(FrameError, match="exceeds the cap"):
        notary.send(Permit("c", "x" * CAP, is_approved=False))
    assert is_empty(ends[1])
    notary.send(Tied())
    assert worker.receive() == Tied()


def test_a_message_over_the_cap_is_refused_before_it_is_whole(ends: Ends) -> None:
    notary = notary_end(ends[0], cap=2 * PACKET_BYTES)
    worker_end(ends[1]).send(sized(3 * PACKET_BYTES + 1))
    assert [notary.receive(), notary.receive()] == [None, None]
    with pytest.raises(FrameError, match="exceeds the cap"):
        notary.receive()
    assert not is_empty(ends[0]), "its last packet"


def test_a_message_of_exactly_the_cap_is_sent_and_taken(ends: Ends) -> None:
    size = 2 * PACKET_BYTES
    sender = PacketChannel[NotaryToWorker](ends[1], NotaryToWorker, table=NOTARY_TO_WORKER, cap_in=CAP, cap_out=size)
    sender.send(sized(size))
    assert whole(notary_end(ends[0], cap=size)) == sized(size)


def test_a_message_out_of_turn_is_neither_sent_nor_taken(ends: Ends) -> None:
    notary, worker = notary_end(ends[0]), worker_end(ends[1])
    with pytest.raises(ProtocolError, match="Permit while new"):
        notary.send(WORD)
    assert is_empty(ends[1])
    ends[0].send(b"\x03" + msgspec.msgpack.encode(WORD))
    with pytest.raises(ProtocolError, match="Permit while new"):
        worker.receive()


def test_an_end_is_notified_that_its_peer_is_gone(ends: Ends) -> None:
    notary, worker = notary_end(ends[0]), worker_end(ends[1])
    notary.send(Tied())
    ends[0].close()
    assert worker.receive() == Tied()
    with pytest.raises(ChannelClosed):
        worker.receive()
    with pytest.raises(OSError, match="Broken pipe"):
        worker.send(result_of())


def test_an_end_that_may_not_wait_says_that_it_would(ends: Ends) -> None:
    ends[0].setblocking(False)
    notary = notary_end(ends[0])
    with pytest.raises(BlockingIOError):
        notary.receive()
    notary.send(Tied())
    with pytest.raises(BlockingIOError):
        while True:
            notary.send(NoPermit("x" * 1000))
