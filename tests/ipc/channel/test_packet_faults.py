"""Packets that are no message: what an end believes of its peer's bytes."""

import socket

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.channel.framing import FrameError
from ipc.channel.packets import PACKET_BYTES, PacketChannel, packet_pair
from ipc.channel.protocol_states import ProtocolError
from ipc.messages.attesting import NoPermit, NotaryToWorker, Permit, Tied, WorkerToNotary
from ipc.messages.calling import Result, Verification
from ipc.protocols.worker import NOTARY_TO_WORKER, WORKER_TO_NOTARY

CAP = 500_000
WORD = Permit("c1", "sha256:00", is_approved=False, settled=("c0",))
RESULT = Result("c1", "success", "{}", None, Verification("skipped"), (), 1, 2, 3)


def notary_end(sock: socket.socket) -> PacketChannel[Result]:
    return PacketChannel(sock, WorkerToNotary, table=WORKER_TO_NOTARY, cap_in=CAP, cap_out=CAP)


def tied_end(sock: socket.socket, notary: socket.socket) -> PacketChannel[NotaryToWorker]:
    """A worker's, which has heard the first message."""
    worker: PacketChannel[NotaryToWorker] = PacketChannel(
        sock, NotaryToWorker, table=NOTARY_TO_WORKER, cap_in=CAP, cap_out=CAP
    )
    notary.send(b"\x03" + msgspec.msgpack.encode(Tied()))
    assert worker.receive() == Tied()
    return worker


def long_result(size: int) -> bytes:
    """A result of so many bytes, in two halves."""
    half = size // 2
    spare = size - len(encode(half - 200, half))
    assert len(encode(half - 200 + spare, half)) == size
    return encode(half - 200 + spare, half)


def encode(characters: int, more: int) -> bytes:
    return msgspec.msgpack.encode(msgspec.structs.replace(RESULT, call_id="x" * characters, output="x" * more))


def body(**fields: object) -> bytes:
    return msgspec.msgpack.encode(fields)


NO_PACKETS = {
    "nothing but its part": b"\x03",
    "garbage": b"\x03\xc1\xc1\xc1",
    "nil": b"\x03\xc0",
    "no tag": b"\x03" + body(call_id="c"),
    "unknown tag": b"\x03" + body(type="WhoKnows"),
    "other direction": b"\x03" + msgspec.msgpack.encode(WORD),
    "missing field": b"\x03" + body(type="Result", call_id="c"),
    "unknown field": b"\x03" + msgspec.msgpack.encode(msgspec.to_builtins(RESULT) | {"type": "Result", "more": 1}),
    "nested": b"\x03" + b"\x91" * 60_000,
    "no UTF-8": b"\x03" + body(type="Result") + b"\xa2\xff\xff",
    "two messages": b"\x03" + msgspec.msgpack.encode(RESULT) * 2,
    "no such part": b"\x07" + msgspec.msgpack.encode(RESULT),
    "less than a part": b"\x01" + b"x" * (PACKET_BYTES - 1),
    "less than a part in the middle": b"\x00",
    "a message longer than a packet": b"\x03" + long_result(PACKET_BYTES + 1),
    "much longer than a packet": b"\x03" + b"x" * (2 * PACKET_BYTES),
}


@pytest.mark.parametrize("data", NO_PACKETS.values(), ids=NO_PACKETS.keys())
def test_a_packet_that_is_no_message_is_refused(data: bytes) -> None:
    notary, worker = packet_pair()
    with notary, worker:
        worker.send(data)
        with pytest.raises(FrameError):
            notary_end(notary).receive()


def test_packets_that_hold_nothing_never_make_a_long_list() -> None:
    """Empty fragments stay below every size cap, so without a check of their own they would pile up without end."""
    notary, worker = packet_pair()
    with notary, worker:
        channel = notary_end(notary)
        worker.send(b"\x01" + b"x" * PACKET_BYTES)
        assert channel.receive() is None
        worker.send(b"\x00")
        with pytest.raises(FrameError, match="no part"):
            channel.receive()


@given(st.lists(st.binary(min_size=1, max_size=80), max_size=8))
def test_arbitrary_packets_are_messages_or_refused_and_nothing_else(packets: list[bytes]) -> None:
    for part in (None, b"\x03"):
        left, right = packet_pair()
        with left, right:
            left.setblocking(False)
            channel = tied_end(left, right)
            for packet in packets:
                right.send((part or b"") + packet)
            try:
                for _ in packets:
                    assert channel.receive() is None or part
            except (FrameError, ProtocolError):
                continue


@given(st.binary(max_size=60), st.integers(0, 200))
def test_a_mutated_word_is_a_message_of_a_notary_or_refused(noise: bytes, at: int) -> None:
    packet = bytearray(msgspec.msgpack.encode(WORD))
    packet[at % len(packet) : at % len(packet) + len(noise)] = noise
    left, right = packet_pair()
    with left, right:
        worker = tied_end(left, right)
        right.send(b"\x03" + bytes(packet))
        try:
            message = worker.receive()
        except FrameError:
            return
    assert isinstance(message, Tied | Permit | NoPermit)
