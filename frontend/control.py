"""The front's end of its control channel: what the supervisor tells it, and what it asks for.

Every question has an id and a deadline; an answer that no task awaits is dropped. Messages go out in order from a
bounded queue, by one task: no caller waits for a supervisor that does not read, and none cuts a frame when it is
cancelled. When the channel closes the supervisor is gone, and so is this process.
"""

import socket
from collections import deque
from typing import Protocol, cast

import trio

from frontend.deadlines import ControlDeadlines
from frontend.telemetry.logs import log
from ipc.channel.fds import DescriptorLost, take
from ipc.channel.nonblocking import TrioChannel
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.brokering import AttachBroker, NeedBroker, ReplaceBroker
from ipc.messages.control import (
    AttachNotary,
    AttachPolicy,
    AttachReader,
    AttachWorker,
    CrashLoops,
    DelivererStarted,
    Drain,
    FinishReload,
    FollowSettings,
    FrontStatus,
    KillWorker,
    NeedWorker,
    PolicyEdited,
    Reload,
    ReloadDone,
    ReplacePolicy,
    RequestReload,
    StartFront,
    Stop,
    SupervisorToFront,
    TryWebhook,
    WebhookTried,
    WorkerGone,
    WorkerServes,
)
from ipc.messages.exporting import AttachExporter, ReplaceExporter
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModuleFile, ModulesLoaded
from ipc.protocols.front import SUPERVISOR_TO_FRONT
from ipc.texts.identifiers import new

MAX_UNSENT = 256
"""Messages that the supervisor has not taken; more of them would not help it."""


Attached = AttachPolicy | AttachReader | AttachWorker | AttachBroker | AttachExporter
"""Messages with the channel of a process that this front can do without, for a while."""


class SupervisorSilent(Exception):
    """No answer in time."""


class Hears(Protocol):
    """The supervisor's commands to a front."""

    def attach_notary(self, message: AttachNotary, sock: socket.socket) -> None:
        """A fresh notary."""

    def attach_policy(self, message: AttachPolicy, sock: socket.socket) -> None:
        """A fresh policy process."""

    def attach_reader(self, message: AttachReader, sock: socket.socket) -> None:
        """A fresh reader."""

    def attach_worker(self, message: AttachWorker, sock: socket.socket) -> None:
        """A fresh worker."""

    def attach_broker(self, message: AttachBroker, sock: socket.socket) -> None:
        """A fresh broker."""

    def attach_exporter(self, message: AttachExporter, sock: socket.socket) -> None:
        """A fresh exporter."""

    def channel_lost(self, message: Attached) -> None:
        """A fresh process whose channel this front could not receive."""

    def worker_gone(self, message: WorkerGone) -> None:
        """A worker ended."""

    def deliverer_started(self, message: DelivererStarted) -> None:
        """A fresh deliverer of webhooks, or an endpoint that is gone."""

    def policy_edited(self, message: PolicyEdited) -> None:
        """Follow a change of the policy's data by another front."""

    def drain(self, message: Drain) -> None:
        """Refuse new work."""

    def note_crash_loops(self, message: CrashLoops) -> None:
        """Tell readiness."""

    def reload(self, message: Reload) -> None:
        """Read the configuration again, in a task of its own."""

    def finish_reload(self, message: FinishReload) -> None:
        """Put in force what was read, or not."""

    def follow_settings(self, message: FollowSettings) -> None:
        """Put in force what a reload has changed, and say so."""

    def stop(self, seconds: float) -> None:
        """Finish within this time."""


class SupervisorLink:
    """Sends requests to the supervisor and hands its messages to a listener."""

    def __init__(self, sock: socket.socket, deadlines: ControlDeadlines = ControlDeadlines()) -> None:
        self.deadlines = deadlines
        """For what is asked from now on."""
        self._channel: TrioChannel[Message] = TrioChannel(
            sock, SupervisorToFront, table=SUPERVISOR_TO_FRONT, cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_CONTROL_FRAME, carries_fds=True,
        )  # fmt: skip
        self._unsent_in, self._unsent_out = trio.open_memory_channel[Message](MAX_UNSENT)
        self._serving: deque[str] = deque(maxlen=MAX_UNSENT)
        """Serving workers that the supervisor must be told of when the queue has room again."""
        self._answers: dict[str, ModulesLoaded | ReloadDone | WebhookTried] = {}
        self._awaited: dict[str, trio.Event] = {}

    async def start(self) -> tuple[StartFront, list[socket.socket], int]:
        """The first message, and what came with it: the listening sockets, and the memory of all fronts."""
        message = await self._channel.receive()
        assert isinstance(message, StartFront)  # the session table allows nothing else
        *listeners, memory = take(self._channel.fds, len(message.listeners) + 1)
        return message, [socket.socket(fileno=one) for one in listeners], memory

    def _taken(self) -> socket.socket:
        """The channel that came with a message. Raises DescriptorLost."""
        (descriptor,) = take(self._channel.fds)
        return socket.socket(fileno=descriptor)

    async def load_modules(self, modules: tuple[ModuleFile, ...]) -> ModulesLoaded:
        """Have modules checked, compiled and mapped. Raises SupervisorSilent."""
        request_id = new("load_")
        message = LoadModules(request_id, modules)
        seconds = self.deadlines.load_seconds
        return cast(ModulesLoaded, await self._ask(request_id, message, seconds, "modules were not loaded"))

    async def reload(self, request: RequestReload) -> ReloadDone:
        """Have every front reload, and return the outcome. Raises SupervisorSilent: then it is unknown."""
        seconds = self.deadlines.reload_seconds
        return cast(ReloadDone, await self._ask(request.request_id, request, seconds, "no answer to a reload"))

    async def try_webhook(self, request: TryWebhook, seconds: float) -> WebhookTried:
        """Have the deliverer make one attempt. Raises SupervisorSilent: then its outcome is unknown."""
        silence = "the process that delivers did not answer"
        return cast(WebhookTried, await self._ask(request.request_id, request, seconds, silence))

    async def _ask(
        self, request_id: str, message: Message, seconds: float, silence: str
    ) -> ModulesLoaded | ReloadDone | WebhookTried:
        self._awaited[request_id] = trio.Event()
        try:
            self.post(message)
            with trio.fail_after(seconds):
                await self._awaited[request_id].wait()
            return self._answers[request_id]
        except trio.TooSlowError:
            raise SupervisorSilent(f"{silence} within {seconds:g} s") from None
        finally:
            del self._awaited[request_id]
            self._answers.pop(request_id, None)

    def post(self, message: Message) -> None:
        """Queue a message to the supervisor. Never waits; one that finds no room is dropped, and the log says so."""
        try:
            self._unsent_in.send_nowait(message)
        except trio.WouldBlock:
            log.error("the supervisor does not read: a message is dropped", kind=type(message).__name__)

    def post_status(self, status: FrontStatus) -> None:
        """Queue a status, unless something has to be said before it: the next one follows in a second."""
        if not self._unsent_in.statistics().current_buffer_used:
            self.post(status)

    def need_worker(self, profile: str) -> None:
        """Ask for one more worker."""
        self.post(NeedWorker(profile))

    def tell_serves(self, worker_id: str) -> None:
        """A worker works. Never dropped for want of room: the successor of one that never served has to wait."""
        try:
            self._unsent_in.send_nowait(WorkerServes(worker_id))
        except trio.WouldBlock:
            self._serving.append(worker_id)

    def kill_worker(self, worker_id: str, reason: str) -> None:
        """Ask for a worker's end."""
        self.post(KillWorker(worker_id, reason))

    def replace_policy(self, pid: int, reason: str) -> None:
        """Ask for another policy process."""
        self.post(ReplacePolicy(pid, reason))

    def need_broker(self) -> None:
        """Ask for a broker, unless one is attached already."""
        self.post(NeedBroker())

    def replace_broker(self, pid: int, reason: str) -> None:
        """Ask for another broker."""
        self.post(ReplaceBroker(pid, reason))

    def replace_exporter(self, pid: int, reason: str) -> None:
        """Ask for another exporter."""
        self.post(ReplaceExporter(pid, reason))

    async def run(self, listener: Hears) -> None:
        """Say what is posted and hand on what the supervisor says, until its channel closes.

        Raises, in a group, ChannelClosed or OSError when it is gone, FrameError and ProtocolError.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._speak)
            while True:
                self._hand_on(await self._channel.receive(), listener)

    async def _speak(self) -> None:
        async for message in self._unsent_out:
            await self._channel.send(message)
            while self._serving:
                await self._channel.send(WorkerServes(self._serving.popleft()))

    def _hand_on(self, message: Message, listener: Hears) -> None:
        match message:
            case AttachNotary():
                listener.attach_notary(message, self._taken())
            case AttachPolicy() | AttachReader() | AttachWorker() | AttachBroker() | AttachExporter():
                self._hand_over(message, listener)
            case WorkerGone():
                listener.worker_gone(message)
            case DelivererStarted():
                listener.deliverer_started(message)
            case ModulesLoaded() | ReloadDone() | WebhookTried() if message.request_id in self._awaited:
                self._answers[message.request_id] = message
                self._awaited[message.request_id].set()
            case PolicyEdited():
                listener.policy_edited(message)
            case Drain():
                listener.drain(message)
            case CrashLoops():
                listener.note_crash_loops(message)
            case Reload():
                listener.reload(message)
            case FinishReload():
                listener.finish_reload(message)
            case FollowSettings():
                listener.follow_settings(message)
            case Stop():
                listener.stop(message.seconds)
            case _:
                log.info("an answer came to no open question", kind=type(message).__name__)

    def _hand_over(self, message: Attached, listener: Hears) -> None:
        """A front with too many open files gives up the process whose channel it could not receive, and lives on."""
        try:
            channel = self._taken()
        except DescriptorLost:
            log.error("too many open files: the channel of a process was lost", pid=message.pid)
            listener.channel_lost(message)
            return
        match message:
            case AttachPolicy():
                listener.attach_policy(message, channel)
            case AttachReader():
                listener.attach_reader(message, channel)
            case AttachWorker():
                listener.attach_worker(message, channel)
            case AttachBroker():
                listener.attach_broker(message, channel)
            case AttachExporter():
                listener.attach_exporter(message, channel)

    def close(self) -> None:
        """Close the channel."""
        self._unsent_in.close()
        self._unsent_out.close()
        self._channel.close()
