"""A worker process without a runtime: speaks frames with ipc.blocking, answers each call with its provider input.

What it does with a call is the call's `action_id`, so that tests choose hostile behaviour call by call; `--first` says
what it sends instead of WorkerReady. Run as `python -m tests.support.echo_worker`.
"""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Callable

import msgspec

from ipc.blocking import BlockingChannel, ChannelClosed
from ipc.exits import Exit
from ipc.framing import encode_frame
from ipc.limits import MAX_CALL_FRAME, MAX_RESULT_FRAME
from ipc.messages import Call, FrontToWorker, GrantKeys, Result, Retire, Verification, Welcome, WorkerReady
from ipc.parent import die_with_parent
from ipc.sessions import FRONT_TO_WORKER


def result_of(call: Call, **changes: object) -> Result:
    """A success whose output is the provider input and whose call count is `io_calls`."""
    result = Result(
        call_id=call.call_id, outcome="success", output=call.plan.provider_input, failure=None,
        verification=Verification("unverifiable_declared"), observations=(), fuel_consumed=1, duration_us=1, io_calls=0,
    )  # fmt: skip
    return msgspec.structs.replace(result, **changes)


def raw(value: object) -> bytes:
    """A frame around any msgpack value."""
    body = msgspec.msgpack.encode(value)
    return len(body).to_bytes(4, "big") + body


HOSTILE: dict[str, Callable[[Call], bytes]] = {
    "forged call id": lambda call: encode_frame(result_of(call, call_id="another"), MAX_RESULT_FRAME),
    "two results": lambda call: encode_frame(result_of(call), MAX_RESULT_FRAME) * 2,
    "a ready instead": lambda call: encode_frame(WorkerReady("w", 1, "compute"), MAX_RESULT_FRAME),
    "oversized": lambda _call: (MAX_RESULT_FRAME + 1).to_bytes(4, "big"),
    "endless": lambda _call: b"\xff\xff\xff\xff",
    "no msgpack": lambda _call: (3).to_bytes(4, "big") + b"\xc1\xc1\xc1",
    "unknown tag": lambda _call: raw({"type": "Grant"}),
    "a front's message": lambda _call: raw({"type": "Retire"}),
    "unknown field": lambda call: raw(msgspec.to_builtins(result_of(call)) | {"extra": 1}),
    "missing field": lambda call: raw({"type": "Result", "call_id": call.call_id}),
    "wrong type": lambda call: raw(msgspec.to_builtins(result_of(call)) | {"duration_us": "1"}),
    "unknown outcome": lambda call: encode_frame(result_of(call, outcome="granted"), MAX_RESULT_FRAME),
    "unknown verification": lambda call: encode_frame(
        result_of(call, verification=Verification("trusted")), MAX_RESULT_FRAME
    ),
    "success without output": lambda call: encode_frame(result_of(call, output=None), MAX_RESULT_FRAME),
    "negative fuel": lambda call: encode_frame(result_of(call, fuel_consumed=-1), MAX_RESULT_FRAME),
    "deep nesting": lambda _call: (4096).to_bytes(4, "big") + b"\x91" * 4096,
}


def answer(
    channel: BlockingChannel[FrontToWorker], sock: socket.socket, call: Call, served: int, grant_jwks: str
) -> bool:
    """Do what the call's action says; False when this was the last one."""
    match call.plan.action_id:
        case "grant_keys":
            channel.send(result_of(call, output=grant_jwks, io_calls=served))
        case "echo" | "pay" | "read" | "note":
            channel.send(result_of(call, io_calls=served))
        case "violates":
            channel.send(result_of(call, outcome="response_schema"))
        case "retiring":
            channel.send(result_of(call, retiring=True))
            return False
        case "half frame":
            sock.sendall(encode_frame(result_of(call), MAX_RESULT_FRAME)[:-5])
            return False
        case "half frame, alive":
            sock.sendall(encode_frame(result_of(call), MAX_RESULT_FRAME)[:-5])
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            return False
        case "hang":
            signal.pause()
        case "speak while idle":
            channel.send(result_of(call))
            channel.send(result_of(call))
        case "leave while idle":
            channel.send(result_of(call))
            return False
        case hostile:
            sock.sendall(HOSTILE[hostile](call))
    return True


def main(given: list[str] | None = None) -> int:
    """Serve until retired. Returns an exit code of ipc.exits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--worker-id", required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument(
        "--first", default="ready", choices=("ready", "silence", "another id", "another profile", "noise", "deaf")
    )
    arguments = parser.parse_args(given)
    die_with_parent(arguments.parent)
    sock = socket.socket(fileno=arguments.channel_fd)
    channel: BlockingChannel[FrontToWorker] = BlockingChannel(
        sock, FrontToWorker, table=FRONT_TO_WORKER, start="new", cap_in=MAX_CALL_FRAME, cap_out=MAX_RESULT_FRAME
    )
    worker_id = "another" if arguments.first == "another id" else arguments.worker_id
    profile = "another" if arguments.first == "another profile" else arguments.profile
    if arguments.first == "silence":
        signal.pause()
    if arguments.first == "noise":
        sock.sendall(b"noise" * 1000)
        signal.pause()
    served, grant_jwks = 0, ""
    try:
        channel.send(WorkerReady(worker_id, os.getpid(), profile))
        if arguments.first == "deaf":
            signal.pause()
        while True:
            message = channel.receive()
            if isinstance(message, Retire):
                return Exit.RECYCLED
            if isinstance(message, Welcome | GrantKeys):
                grant_jwks = message.grant_jwks
                continue
            served += 1
            if not answer(channel, sock, message, served, grant_jwks):
                return Exit.RECYCLED
    except (ChannelClosed, ConnectionError):
        return Exit.ORPHANED
    finally:
        channel.close()


if __name__ == "__main__":
    sys.exit(main())
