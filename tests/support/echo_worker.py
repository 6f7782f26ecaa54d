"""A worker process without a runtime: a real desk (workers/worker_loop.py), whose runner answers with the provider
input.

The `action_id` of a call chooses its behaviour, so that tests choose hostile behaviour call by call; `--first` names
the message that it sends instead of WorkerReady. It sends hostile messages to its front alone, and reports a success
to the notary unless it ends before. Run by tests/support/echo_template.py.
"""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import encode_frame
from ipc.channel.packets import PacketChannel
from ipc.limits import MAX_CALL_FRAME, MAX_CONTROL_FRAME, MAX_RESULT_FRAME
from ipc.messages.attesting import NotaryToWorker, Permit
from ipc.messages.calling import Call, FrontToWorker, ProviderFailure, Result, TokenRefused, Verification, WorkerReady
from ipc.plan import hash_of
from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent
from ipc.protocols.worker import FRONT_TO_WORKER, NOTARY_TO_WORKER
from workers.crew import Crew
from workers.host.http import Renew
from workers.worker_loop import FrontChannel, NotaryChannel, WorkerLoop

GO_ON = signal.SIGUSR1
"""Ends the waiting of a call with the action `wait`."""
MANY_CALLS = 1_000_000
DEADLINE = 60.0


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
    "a token that it was not given": lambda call: encode_frame(TokenRefused(call.call_id, "token"), MAX_RESULT_FRAME),
    "a token of no call": lambda _call: encode_frame(TokenRefused("another", "token"), MAX_RESULT_FRAME),
    "deep nesting": lambda _call: (4096).to_bytes(4, "big") + b"\x91" * 4096,
}
TOLD_OTHERWISE: dict[str, Callable[[Call], bytes]] = HOSTILE | {
    "half frame": lambda call: encode_frame(result_of(call), MAX_RESULT_FRAME)[:-5],
    "half frame, alive": lambda call: encode_frame(result_of(call), MAX_RESULT_FRAME)[:-5],
    "nothing-to-its-front": lambda _call: b"",
    "another-output": lambda call: encode_frame(result_of(call, output='{"forged":1}'), MAX_RESULT_FRAME),
    "speak while idle": lambda call: encode_frame(result_of(call), MAX_RESULT_FRAME) * 2,
}
"""The messages that these actions send to the front in place of the result."""
LEAVES_AFTER = frozenset({"half frame", "leave while idle"})


class Leaving(Exception):
    """The worker ends, as its call's action wants it."""


class EchoRunner:
    """Does what a call's action says, in place of a provider."""

    outside: Any = None

    def __init__(self) -> None:
        self.served = 0
        self.last: Call | None = None
        self.retires: Callable[[], None] = lambda: None

    def run(self, call: Call, word: Permit, secrets: Mapping[str, str], renew: Renew) -> Result:
        """As workers.runtime.call.Runner."""
        self.served += 1
        self.last = call
        if hash_of(call.encoded) != word.plan_hash:
            return result_of(call, outcome="plan_refused", output=None)
        match call.plan.action_id:
            case "warns":
                return result_of(call, violation="$.n: is no text")
            case "violates":
                return result_of(call, outcome="response_schema")
            case "complains":
                return result_of(
                    call, outcome="provider_error", output=None, failure=ProviderFailure("invalid", "it is closed")
                )
            case "retiring":
                self.retires()
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                raise Leaving
            case "hang":
                signal.pause()
            case "wait":
                signal.sigwait({GO_ON})
            case "renews":
                return result_of(call, output=msgspec.json.encode(renew("token", DEADLINE)).decode())
            case "secrets":
                return result_of(call, output=msgspec.json.encode(dict(secrets)).decode())
        return result_of(call, io_calls=self.served)


KNOWN = frozenset(
    {"echo", "pay", "read", "note", "violates", "complains", "retiring", "die", "exit", "hang", "wait", "secrets",
     "warns", "renews", *TOLD_OTHERWISE, *LEAVES_AFTER}
)  # fmt: skip


class EchoDesk(WorkerLoop):
    """A desk that may tell its front something else than the notary. In the http profile it runs shared calls."""

    def __init__(self, sock: socket.socket, front: FrontChannel, notary: NotaryChannel, profile: str) -> None:
        self._ending: Call | None = None
        echo = EchoRunner()
        echo.retires = self._retires
        self._sock = sock
        runner: Any = echo  # it runs calls as a Runner does
        crew = Crew(lambda: runner) if profile == "http" else None
        if crew is not None:
            crew.start()
        super().__init__(front, notary, runner, MANY_CALLS, crew=crew)

    def _retires(self) -> None:
        self._left = 1

    def _note_end(self, call: Call, result: Result, is_stuck: bool = False) -> None:
        self._ending = call
        super()._note_end(call, result, is_stuck)

    def _tell(self, result: Result) -> None:
        call = self._ending
        if call is None or call.call_id != result.call_id:  # it was given up, and did not run
            super()._tell(result)
            return
        action = call.plan.action_id
        if action not in KNOWN:
            raise Leaving
        otherwise = TOLD_OTHERWISE.get(action)
        if otherwise is None:
            super()._tell(result)
        else:
            self._sock.sendall(otherwise(call))
            self._notary.send(result)
        if action in LEAVES_AFTER:
            raise Leaving


def main(given: list[str] | None = None) -> int:
    """Serve until retired. Returns an exit code of ipc.process.exits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--notary-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--worker-id", required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument(
        "--first", default="ready", choices=("ready", "silence", "another id", "another profile", "noise", "deaf")
    )
    arguments = parser.parse_args(given)
    die_with_parent(arguments.parent)
    signal.pthread_sigmask(signal.SIG_BLOCK, {GO_ON})
    sock = socket.socket(fileno=arguments.channel_fd)
    front: FrontChannel = BlockingChannel(
        sock, FrontToWorker, table=FRONT_TO_WORKER, cap_in=MAX_CALL_FRAME, cap_out=MAX_RESULT_FRAME
    )
    notary: NotaryChannel = PacketChannel(
        socket.socket(fileno=arguments.notary_fd), NotaryToWorker, table=NOTARY_TO_WORKER,
        cap_in=MAX_CONTROL_FRAME, cap_out=MAX_RESULT_FRAME,
    )  # fmt: skip
    worker_id = "another" if arguments.first == "another id" else arguments.worker_id
    profile = "another" if arguments.first == "another profile" else arguments.profile
    if arguments.first == "silence":
        signal.pause()
    if arguments.first == "noise":
        sock.sendall(b"noise" * 1000)
        signal.pause()
    try:
        desk = EchoDesk(sock, front, notary, arguments.profile)
        desk.wait_tied()
        front.send(WorkerReady(worker_id, os.getpid(), profile))
        if arguments.first == "deaf":
            signal.pause()
        return desk.serve()
    except Leaving:
        return Exit.RECYCLED
    except (ChannelClosed, OSError):
        return Exit.ORPHANED
    finally:
        front.close()
        notary.close()


if __name__ == "__main__":
    sys.exit(main())
