"""Messages of a compromised worker to front and notary: lies of every kind, one step each."""

import socket
import struct
from collections.abc import Callable
from typing import Any

import msgspec

from ipc.channel.framing import encode_frame
from ipc.channel.packets import PACKET_BYTES
from ipc.limits import MAX_RESULT_FRAME
from ipc.messages.calling import Result, Verification, WorkerReady
from tests.support.escape_steps import Facts, Step

_WHOLE = b"\x03"
"""The first and the last part of a message."""


def _said(kind: int, *packets: bytes | Callable[[Facts], bytes]) -> Step:
    """A step that sends these bytes on the channel of this kind."""

    def act(facts: Facts) -> object:
        sock = channel(kind)
        try:
            for packet in packets:
                sock.sendall(packet if isinstance(packet, bytes) else packet(facts))
        finally:
            sock.detach()
        return "sent"

    return act


def channel(kind: int) -> socket.socket:
    """The worker's channel of this kind; its front's is a stream, its notary's one of packets."""
    for number in range(3, 32):
        try:
            sock = socket.socket(fileno=number)
        except OSError:
            continue
        if sock.type == kind:
            return sock
        sock.detach()
    raise FileNotFoundError


def _result(facts: Facts, call_id: str, **changes: Any) -> Result:
    values: dict[str, Any] = {
        "outcome": "success", "output": '{"got":"a lie"}', "failure": None, "verification": Verification("skipped"),
        "observations": (), "fuel_consumed": 0, "duration_us": 0, "io_calls": 0,
    }  # fmt: skip
    return Result(call_id=facts.get(call_id, call_id), **(values | changes))


def _frame(message: object) -> bytes:
    return encode_frame(message, MAX_RESULT_FRAME)


def _packet(message: object) -> bytes:
    return _WHOLE + msgspec.msgpack.encode(message)


FRONT, NOTARY = socket.SOCK_STREAM, socket.SOCK_SEQPACKET
LIES: dict[str, Step] = {
    "to the front: a frame of four gigabytes": _said(FRONT, b"\xff\xff\xff\xff"),
    "to the front: a frame over the cap": _said(FRONT, struct.pack(">I", MAX_RESULT_FRAME + 1)),
    "to the front: garbage": _said(FRONT, b"\0\0\0\x03abc"),
    "to the front: half a frame": _said(FRONT, b"\0\0\1\0half"),
    "to the front: a frame of nothing": _said(FRONT, b"\0\0\0\0"),
    "to the front: deep nesting": _said(FRONT, b"\0\x01\0\0" + b"\x91" * 65_536),
    "to the front: a message of another direction": _said(FRONT, b"\0\0\0\x0d\x81\xa4type\xa6Retire"),
    "to the front: that it is ready, again": _said(FRONT, _frame(WorkerReady("worker-compute-1", 1, "compute"))),
    "to the front: a result of another call": _said(FRONT, lambda f: _frame(_result(f, "other"))),
    "to the front: a result of a call of another worker": _said(FRONT, lambda f: _frame(_result(f, "theirs"))),
    "to the front: a result that the notary does not hear": _said(FRONT, lambda f: _frame(_result(f, "call_id"))),
    "to the front: its result twice": _said(FRONT, *[lambda f: _frame(_result(f, "call_id"))] * 2),
    "to the notary: garbage": _said(NOTARY, b"\x03abc"),
    "to the notary: nothing": _said(NOTARY, b"\x03"),
    "to the notary: no such part": _said(NOTARY, b"\x07" + b"x" * 100),
    "to the notary: a packet over the cap": _said(NOTARY, _WHOLE + b"x" * (PACKET_BYTES + 1)),
    "to the notary: a message over the cap": _said(
        NOTARY, b"\x01" + b"x" * PACKET_BYTES, *[b"\x00" + b"x" * PACKET_BYTES] * (MAX_RESULT_FRAME // PACKET_BYTES + 1)
    ),
    "to the notary: deep nesting": _said(NOTARY, _WHOLE + b"\x91" * 60_000),
    "to the notary: a message of another direction": _said(
        NOTARY,
        _WHOLE + msgspec.msgpack.encode({"type": "Permit", "call_id": "c", "plan_hash": "h", "is_approved": True}),
    ),
    "to the notary: a result of another call": _said(NOTARY, lambda f: _packet(_result(f, "other"))),
    "to the notary: a result of a call of another worker": _said(NOTARY, lambda f: _packet(_result(f, "theirs"))),
    "to the front: another result than to the notary": _said(NOTARY, lambda f: _packet(_result(f, "call_id"))),
    "to the notary: an outcome of no worker": _said(
        NOTARY, lambda f: _packet(_result(f, "call_id", outcome="worker_lost", output=None))
    ),
    "to the notary: a verification that nobody made": _said(
        NOTARY, lambda f: _packet(_result(f, "call_id", verification=Verification("verified")))
    ),
    "to the notary: numbers below zero": _said(NOTARY, lambda f: _packet(_result(f, "call_id", duration_us=-1))),
}  # fmt: skip
