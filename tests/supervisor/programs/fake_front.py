"""A front without services: speaks the supervisor's channel and does what a test tells it over its client socket.

One JSON object a line in, one out. `{"do": "state"}` tells what it has seen; `send` sends any message to the
supervisor; `exit`, `garbage`, `worker`, `policy`, `busy` misbehave. How it starts is read from `fake-front.json`.
"""

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import msgspec
import trio
from setproctitle import setproctitle

from ipc.channel.blocking import ChannelClosed
from ipc.channel.nonblocking import TrioChannel
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.control import (
    AttachNotary,
    AttachPolicy,
    AttachWorker,
    CrashLoops,
    Drain,
    Draining,
    FinishReload,
    FollowSettings,
    FrontReady,
    FrontStatus,
    FrontToSupervisor,
    PolicyEdited,
    Reload,
    ReloadDone,
    ReloadPrepared,
    SettingsFollowed,
    StartFront,
    Stop,
    SupervisorToFront,
    WorkerGone,
    WorkerServes,
)
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModuleFile, ModulesLoaded
from ipc.protocols.front import SUPERVISOR_TO_FRONT
from tests.support.child_program import played_child


class FakeFront:
    def __init__(self, control: socket.socket) -> None:
        self.raw = control.dup()
        self.channel: TrioChannel[Message] = TrioChannel(
            control, SupervisorToFront, table=SUPERVISOR_TO_FRONT,
            cap_in=MAX_CONTROL_FRAME, cap_out=MAX_CONTROL_FRAME, carries_fds=True,
        )  # fmt: skip
        self.workers: dict[str, AttachWorker] = {}
        self.channels: dict[str, socket.socket] = {}
        self.policy: socket.socket | None = None
        self.notary: socket.socket | None = None
        self.seen: dict[str, Any] = {
            "pid": os.getpid(), "workers": {}, "gone": [], "policies": [], "notaries": [],
            "loaded": [], "reloads": [], "reloaded": [], "operators": [], "edited": [], "finishes": [], "follows": [],
            "crash_loops": [], "drained": False, "stopping": False, "environment": sorted(os.environ),
        }  # fmt: skip
        self.in_flight = 0
        self.reload_error: str | None = None
        self.finish_error: str | None = None
        self.answers_reload = True
        self.stops = True
        self.idle = trio.Event()

    async def run(self) -> None:
        start = await self.channel.receive()
        assert isinstance(start, StartFront)
        setproctitle(f"gateway: front {start.number}")
        self.seen |= {
            "front_id": start.front_id, "live_fronts": start.live_fronts, "weakened": start.settings.weakened,
            "started_with": [one.name for one in start.settings.operators],
            "listeners": [[one.kind, one.address] for one in start.listeners],
        }  # fmt: skip
        self.script = json.loads(read_script(Path(start.settings.state_dir)))
        if "exit_at_start" in self.script:
            os._exit(self.script["exit_at_start"])
        listeners = [self.channel.fds.popleft() for _ in start.listeners]
        os.close(self.channel.fds.popleft())  # the memory of all fronts
        async with trio.open_nursery() as nursery:
            for fd in listeners:
                sock = socket.socket(fileno=fd)
                sock.setblocking(False)
                nursery.start_soon(
                    trio.serve_listeners, self.talk, [trio.SocketListener(trio.socket.from_stdlib_socket(sock))]
                )
            modules = tuple(ModuleFile(name, None, ()) for name in self.script.get("modules", ["builtin:echo"]))
            await self.channel.send(LoadModules("first", modules))
            try:
                while True:
                    await self.answer(await self.channel.receive())
            except ChannelClosed:
                os._exit(11)

    async def answer(self, message: Message) -> None:
        match message:
            case AttachPolicy():
                self.seen["policies"].append(message.pid)
                if self.policy is not None:
                    self.policy.close()
                self.policy = socket.socket(fileno=self.channel.fds.popleft())
            case AttachNotary():
                self.seen["notaries"].append(message.pid)
                if self.notary is not None:
                    self.notary.close()
                self.notary = socket.socket(fileno=self.channel.fds.popleft())
            case AttachWorker():
                self.seen["workers"][message.worker_id] = [message.profile, message.pid, message.generation]
                self.channels[message.worker_id] = socket.socket(fileno=self.channel.fds.popleft())
                if not self.script.get("greeted_by_none"):
                    await self.channel.send(WorkerServes(message.worker_id))
            case WorkerGone():
                self.seen["gone"].append([message.worker_id, message.reason])
                self.seen["workers"].pop(message.worker_id, None)
                if message.worker_id in self.channels:
                    self.channels.pop(message.worker_id).close()
            case ModulesLoaded():
                verdicts = [verdict.verdict for verdict in message.verdicts]
                self.seen["loaded"].append([message.request_id, message.generation, verdicts])
                if message.request_id == "first" and not self.script.get("never_ready"):
                    await self.channel.send(FrontReady(1))
            case Drain():
                self.seen["drained"] = True
                await self.channel.send(Draining(self.in_flight))
            case Reload():
                self.seen["reloads"].append([message.request_id, message.requested_by])
                self.seen["operators"].append([message.operator_jkt, message.proof_jti])
                if not self.answers_reload:
                    return
                if message.waits and self.reload_error is None:
                    await self.channel.send(ReloadPrepared(message.request_id))
                else:
                    await self.channel.send(ReloadDone(message.request_id, self.reload_error, 7, "v1"))
            case FinishReload():
                self.seen["finishes"].append(message.error)
                error = message.error or self.finish_error
                await self.channel.send(ReloadDone(message.request_id, error, 7, "v1"))
            case FollowSettings():
                self.seen["follows"].append([one.name for one in message.reloadable.operators])
                if not self.script.get("never_follows"):
                    await self.channel.send(SettingsFollowed(message.request_id))
            case ReloadDone():
                self.seen["reloaded"].append([message.request_id, message.error, message.actions])
            case CrashLoops():
                self.seen["crash_loops"] = message.children
            case PolicyEdited():
                self.seen["edited"].append(message.digest)
            case Stop():
                self.seen["stopping"] = True
                if self.stops:
                    os._exit(self.script.get("exit_at_stop", 0))

    async def talk(self, stream: trio.SocketStream) -> None:
        buffer = b""
        async with stream:
            while chunk := await stream.receive_some():
                buffer += chunk
                while b"\n" in buffer:
                    line, _, buffer = buffer.partition(b"\n")
                    await stream.send_all(json.dumps(await self.obey(json.loads(line))).encode() + b"\n")

    async def obey(self, command: dict[str, Any]) -> Any:
        match command["do"]:
            case "state":
                return self.seen
            case "send":
                await self.channel.send(msgspec.convert(command["message"], FrontToSupervisor))
            case "exit":
                os._exit(command["code"])
            case "garbage":
                await trio.lowlevel.wait_writable(self.raw)
                self.raw.send(bytes.fromhex(command["hex"]))
            case "close":
                self.raw.shutdown(socket.SHUT_WR)
            case "worker" | "policy":
                sock = self.policy if command["do"] == "policy" else self.channels[command["worker_id"]]
                assert sock is not None
                sock.send(command["text"].encode())
            case "connect":
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.settimeout(60)
                    sock.connect(command["path"])
                    try:
                        sock.sendall(command["line"].encode())
                        return sock.recv(4096).decode()
                    except ConnectionError:
                        return ""
            case "orphan":
                return make_orphan()
            case "busy":
                self.in_flight = command["in_flight"]
                named = {name: command[name] for name in ("is_ledger_full", "dependencies") if name in command}
                await self.channel.send(FrontStatus(self.in_flight, 0, 0, 1, **named))
            case "set":
                for name, value in command["values"].items():
                    assert hasattr(self, name)
                    setattr(self, name, value)
        return "done"


def make_orphan() -> int:
    """A grandchild whose parent ends at once, so that this front's reaper inherits it. It lives until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.write(writing, str(os.getpid()).encode())
            signal.pause()
        os._exit(0)
    os.waitpid(child, 0)
    try:
        return int(os.read(reading, 32))
    finally:
        os.close(reading)
        os.close(writing)


def read_script(state_dir: Path) -> str:
    try:
        return (state_dir / "fake-front.json").read_text()
    except FileNotFoundError:
        return "{}"


def main() -> None:
    control_socket = played_child()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    trio.run(FakeFront(control_socket).run)


main()
