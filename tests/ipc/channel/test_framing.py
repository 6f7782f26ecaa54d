"""Frames: what one process may believe of another process' bytes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.channel.framing import Decoder, FrameError, encode_frame
from ipc.messages.attesting import NotaryToWorker
from ipc.messages.calling import FrontToWorker, Result, Verification, WorkerReady, WorkerToFront
from ipc.messages.control import FrontToSupervisor
from ipc.messages.deciding import PolicyToFront
from ipc.messages.forking import SpawnWorker, SupervisorToTemplate, TemplateToSupervisor, WorkerStarted
from ipc.messages.message import Message

CAP = 4096


def decoder(cap: int = CAP) -> Decoder[SupervisorToTemplate]:
    return Decoder(SupervisorToTemplate, cap)


def spawn(title: str = "gateway: worker http 2") -> SpawnWorker:
    return SpawnWorker("w1", "http", title)


def test_a_message_arrives_as_it_was_sent() -> None:
    box = decoder()
    box.feed(encode_frame(spawn(), CAP))
    assert box.next_message() == spawn()
    assert box.next_message() is None
    assert box.is_empty


@pytest.mark.parametrize("message", [spawn("\ud800"), WorkerStarted("w1", 1, 1 << 64)], ids=["text", "number"])
def test_a_message_that_no_frame_can_carry_is_refused_as_one_that_is_too_large(message: Message) -> None:
    with pytest.raises(FrameError, match="can't be encoded"):
        encode_frame(message, CAP)


@given(st.lists(st.integers(1, 40), max_size=200))
def test_messages_arrive_whole_and_in_order_however_the_bytes_are_cut(cuts: list[int]) -> None:
    sent = [spawn(f"title {n}") for n in range(5)]
    stream = b"".join(encode_frame(message, CAP) for message in sent)
    box, got, at = decoder(), [], 0
    for size in [*cuts, len(stream)]:
        box.feed(stream[at : at + size])
        at += size
        while (message := box.next_message()) is not None:
            got.append(message)
    assert got == sent


def test_a_header_over_the_cap_is_refused_before_its_body_is_there() -> None:
    with pytest.raises(FrameError, match="exceeds the cap"):
        decoder().feed((CAP + 1).to_bytes(4, "big"))


def test_a_second_header_over_the_cap_is_refused_behind_a_good_frame() -> None:
    box = decoder()
    box.feed(encode_frame(spawn(), CAP))
    assert box.next_message() is not None
    with pytest.raises(FrameError, match="exceeds the cap"):
        box.feed(b"\xff\xff\xff\xff")


def test_sent_messages_obey_the_cap_too() -> None:
    with pytest.raises(FrameError, match="SpawnWorker of"):
        encode_frame(spawn("x" * CAP), CAP)


@pytest.mark.parametrize(
    "body",
    [
        {"type": "SpawnWorker", "worker_id": "w", "profile": "http", "title": "t", "more": 1},
        {"type": "SpawnWorker", "worker_id": 1, "profile": "http", "title": "t"},
        {"type": "SpawnWorker", "worker_id": "w"},
        {"type": "WorkerReady", "worker_id": "w", "pid": 1, "profile": "http"},
        {"worker_id": "w", "profile": "http", "title": "t"},
        [],
        None,
        7,
    ],
    ids=["unknown field", "wrong type", "missing field", "other direction", "no tag", "array", "nil", "number"],
)
def test_a_body_that_is_no_message_of_the_direction_is_refused(body: object) -> None:
    raw = msgspec.msgpack.encode(body)
    box = decoder()
    box.feed(len(raw).to_bytes(4, "big") + raw)
    with pytest.raises(FrameError, match="not a message"):
        box.next_message()


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_a_message_or_refused_and_nothing_else(raw: bytes) -> None:
    for union in (
        WorkerToFront,
        PolicyToFront,
        FrontToSupervisor,
        TemplateToSupervisor,
        FrontToWorker,
        NotaryToWorker,
    ):
        box: Decoder[Message] = Decoder(union, CAP)
        try:
            box.feed(raw)
            while box.next_message() is not None:
                pass
        except FrameError:
            continue


@given(st.binary(max_size=200), st.integers(0, 400))
def test_a_mutated_result_is_a_result_or_refused(noise: bytes, at: int) -> None:
    result = Result("c", "success", "{}", None, Verification("skipped"), (), 1, 2, 3)
    frame = bytearray(encode_frame(result, CAP))
    body = frame[4:]
    body[at % len(body) : at % len(body) + len(noise)] = noise
    box: Decoder[Message] = Decoder(WorkerToFront, CAP)
    try:
        box.feed(len(body).to_bytes(4, "big") + bytes(body))
        message = box.next_message()
    except FrameError:
        return
    assert isinstance(message, Result | WorkerReady)
