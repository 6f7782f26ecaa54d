"""A real notary process, started and spoken to by a test that plays its supervisor, and fronts that the test plays.

A played front has the bytes of its channel in its hand: it sends what a sound front would not.
"""

import io
import itertools
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import msgspec

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import encode_frame
from ipc.evidence.events import AuditEvent
from ipc.limits import MAX_CONTROL_FRAME, MAX_NOTARY_FRAME
from ipc.messages.calling import Result
from ipc.messages.control import FollowSettings, SettingsFollowed
from ipc.messages.notarising import (
    AttachFront,
    FrontDetached,
    NotaryReady,
    NotaryToSupervisor,
    StartNotary,
    StopNotary,
    WorkerBroke,
)
from ipc.messages.notary_frames import Answered, Begun, FrontFacts, NotaryToFront, NumberedOperation
from ipc.operations.calls import Closed, Open
from ipc.operations.evidence import WriteEvent
from ipc.protocols.notary import NOTARY_TO_FRONT, NOTARY_TO_SUPERVISOR
from ipc.reloadable import Reloadable
from ipc.settings import OperatorSettings, Settings, WebhookSettings
from notary.programs import offline
from notary.signing.make_keys import make_keys
from supervisor.programs import INTERPRETER
from tests.support.played_workers import Workers
from tests.support.supervised import told

Heard = NotaryReady | FrontDetached | WorkerBroke | SettingsFollowed
SECONDS = 60.0
"""For one answer, a start or an end."""


def settings_in(folder: Path, webhooks: tuple[WebhookSettings, ...] = (), **more: Any) -> Settings:
    """Settings of a notary whose state is in `folder`, with keys made there."""
    make_keys(folder)
    keys = folder / "keys"
    more = {"operators": (OperatorSettings("op"),)} | more
    return Settings(
        state_dir=str(folder), public_base_url="http://gateway.test", lease_signing_key_path=str(keys / "lease.pem"),
        grant_signing_key_path=str(keys / "grant.pem"), receipt_signing_key_path=str(keys / "receipt.pem"),
        receipt_keys_jwks_path=str(folder / "receipt-keys.jwks.json"), webhooks=webhooks, dev_mode=True, **more,
    )  # fmt: skip


class PlayedFront:
    """A front's end of a channel. Its calls have workers that do what the test has them do, and nothing else."""

    def __init__(self, front_id: str, sock: socket.socket, first: int, workers: Workers) -> None:
        sock.settimeout(SECONDS)
        self.front_id = front_id
        self.sock = sock
        self.in_force: FrontFacts | None = None
        self.begun: set[int] = set()
        """Numbers of calls that the notary said of that they were begun."""
        self.workers = workers
        self._numbers_of: dict[str, int] = {}
        self._numbers = itertools.count(first)
        self._channel: BlockingChannel[Any] = BlockingChannel(
            sock, NotaryToFront, table=NOTARY_TO_FRONT, cap_in=MAX_NOTARY_FRAME,
            cap_out=MAX_NOTARY_FRAME,
        )  # fmt: skip

    def ask(self, operation: Any) -> Answered:
        """One operation, and its answer."""
        return self.heard(self.send(operation))

    def send(self, operation: Any) -> int:
        """One operation; its number. A call without a worker gets one."""
        number = next(self._numbers)
        self.sock.sendall(framed(number, self.staffed(operation)))
        return number

    def staffed(self, operation: Any) -> Any:
        """A call without a worker gets one that has room; anything else as it is."""
        return self.workers.staffed(self.front_id, operation, obeys=False)

    def begin(self, asked: Open) -> int:
        """Have a call begun; its number."""
        number = self.send(msgspec.structs.replace(asked, wants_begun=True))
        while number not in self.begun:
            answered = self._hear()
            assert getattr(answered, "number", 0) != number or number in self.begun, answered
        self._numbers_of[asked.intent_id] = number
        return number

    def end(self, asked: Open, result: Result) -> Closed:
        """Have the worker of a call that was begun tell this result of it; how the call ended."""
        self.workers.of(asked.intent_id).tell(msgspec.structs.replace(result, call_id=asked.intent_id))
        return self.ended(asked)

    def lose(self, asked: Open, reason: str) -> Closed:
        """Have the worker of a call that was begun take the word and end; how the call ended."""
        worker = self.workers.of(asked.intent_id)
        worker.word()
        self.workers.end(worker, reason)
        return self.ended(asked)

    def unbegun(self, asked: Open) -> bool:
        """Whether the next answer to a call that was begun is that its worker will not run it."""
        answered = self.heard(self._numbers_of[asked.intent_id])
        return answered.problem is None and b"Unbegun" in bytes(answered.value)

    def ended(self, asked: Open) -> Closed:
        """How a call that was begun has ended."""
        answered = self.heard(self._numbers_of[asked.intent_id])
        assert answered.problem is None, answered
        self.workers.ended(asked.intent_id)
        closed: Closed = msgspec.msgpack.decode(answered.value, type=Closed)
        return closed

    def value(self, operation: Any, answer: Any = Any) -> Any:
        """The value of an answer without a problem, as this type."""
        answered = self.ask(operation)
        assert answered.problem is None, answered
        return msgspec.msgpack.decode(answered.value, type=answer)

    def heard(self, number: int) -> Answered:
        """The answer with this number; what the notary says besides is kept."""
        while True:
            message = self._hear()
            if isinstance(message, Answered) and message.number == number:
                return message

    def _hear(self) -> Any:
        message = self._channel.receive()
        if isinstance(message, FrontFacts):
            self.in_force = message
        if isinstance(message, Begun):
            self.begun.add(message.number)
        return message

    def is_cut(self) -> bool:
        """Wait for the end of the channel, and answers before it."""
        try:
            while True:
                self._channel.receive()
        except (ChannelClosed, OSError):
            return True

    def close(self) -> None:
        """As the end of a front's process does."""
        self._channel.close()


def framed(number: int, operation: Any) -> bytes:
    """One operation as it goes over the channel."""
    return encode_frame(NumberedOperation(number, operation), MAX_NOTARY_FRAME)


def framed_raw(fields: Any) -> bytes:
    """A frame around any msgpack value."""
    body = msgspec.msgpack.encode(fields)
    return len(body).to_bytes(4, "big") + body


class PlayedSupervisor:
    """The supervisor of one notary process."""

    def __init__(self, settings: Settings, log: Path, workers: Workers | None = None) -> None:
        """`workers` are those that live already."""
        self.settings = settings
        self.log = log
        ours, theirs = socket.socketpair()
        ours.settimeout(SECONDS)
        with theirs, log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*INTERPRETER, "notary.main", "--control-fd", str(theirs.fileno()), "--parent", str(os.getpid())],
                pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd="/",
            )  # fmt: skip
        self._control: BlockingChannel[Heard] = BlockingChannel(
            ours, NotaryToSupervisor, table=NOTARY_TO_SUPERVISOR, cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        self._control.send(StartNotary(settings))
        self.workers = workers or Workers()
        self.workers.tie_all(self._control.send)
        self._fronts: list[PlayedFront] = []

    def wait_ready(self) -> None:
        """Until it serves."""
        assert self.hears() == NotaryReady()

    def follow(self, reloadable: Reloadable) -> None:
        """Have it decide by other operators from now on."""
        self._control.send(FollowSettings("reload-1", reloadable))
        assert self.hears() == SettingsFollowed("reload-1")

    def hears(self) -> Heard:
        """Wait for the notary's next message to its supervisor."""
        return self._control.receive()

    def attach(self, front_id: str, first: int = 1) -> PlayedFront:
        """A front's end of a new channel. `first` is the number of its first operation: a front goes on counting."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._control.send(AttachFront(front_id), (theirs.fileno(),))
        self._fronts.append(PlayedFront(front_id, ours, first, self.workers))
        return self._fronts[-1]

    def said(self, message: str) -> list[dict[str, Any]]:
        """Lines of the log with this message, oldest first."""
        return told(self.log.read_text(), message)

    def stop(self) -> int:
        """Have it finish; its exit code."""
        if self.process.poll() is None:
            self._control.send(StopNotary())
        return self.process.wait(SECONDS)

    def close(self) -> None:
        """End whatever is left, but its workers."""
        for front in self._fronts:
            front.close()
        self._control.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SECONDS)


@contextmanager
def played_supervisor(folder: Path, workers: Workers | None = None, **settings: Any) -> Iterator[PlayedSupervisor]:
    """A notary that serves, with its state in `folder / "state"`. `workers` are those that live already."""
    supervisor = PlayedSupervisor(settings_in(folder / "state", **settings), folder / "notary.log", workers)
    try:
        supervisor.wait_ready()
        yield supervisor
    finally:
        supervisor.close()
        if workers is None:
            supervisor.workers.close()


def checked_offline(state: Path) -> str:
    """The text that the offline check prints of a ledger, its chain, receipts and intents. Fails unless it is whole.

    It runs within this process: tests/notary/reading/test_offline.py runs the program.
    """
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = offline.main([str(state / "ledger.sqlite3"), "--keys", str(state / "receipt-keys.jwks.json")])
    assert code == 0, said.getvalue()
    return said.getvalue()


@contextmanager
def sound_notary(folder: Path, **settings: Any) -> Iterator[PlayedSupervisor]:
    """A notary whose log has no traceback and whose ledger is whole at the end, no matter what was sent to it."""
    with played_supervisor(folder, **settings) as running:
        yield running
        assert running.process.poll() is None
        sound = running.attach("front-9-sound")
        sound.value(WriteEvent(AuditEvent(event_type="GatewayStopped", trace_id="trc_end", decision="allow")))
        assert running.stop() == 0
        checked_offline(Path(running.settings.state_dir))
        assert "Traceback" not in running.log.read_text()
