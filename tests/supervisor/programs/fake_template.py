"""A template without WebAssembly: forks workers that do what a line of text tells them. Scripted by a file.

`fake-template.json` in the state directory: `exit_at_start`, an exit code; `deadly` and `refused`, modules that end it
or do not load; `claims`, the `pid` (or "supervisor") and `generation` that the first one tells of its workers.
"""

import json
import os
import select
import signal
import socket
from pathlib import Path

from setproctitle import setproctitle

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.forking import (
    KillForked,
    SpawnWorker,
    StartTemplate,
    SupervisorToTemplate,
    TemplateReady,
    WorkerExited,
    WorkerStarted,
)
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModulesLoaded, ModuleVerdict
from ipc.messages.pinging import Ping, Pong
from ipc.process.parent import die_with_parent
from ipc.protocols.template import SUPERVISOR_TO_TEMPLATE
from tests.support.child_program import played_child


def work(channel: socket.socket, parent: int, title: str) -> None:
    """A worker that exits with N on `exit N`, and at the end of its channel."""
    die_with_parent(parent)
    setproctitle(title)
    while data := channel.recv(4096):
        word, _, argument = data.decode().partition(" ")
        if word == "exit":
            os._exit(int(argument))
    os._exit(11)


class FakeTemplate:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.channel: BlockingChannel[Message] = BlockingChannel(
            sock, SupervisorToTemplate, table=SUPERVISOR_TO_TEMPLATE,
            cap_in=MAX_CONTROL_FRAME, cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        self.alive: dict[int, str] = {}
        self.loaded: set[str] = set()
        self.generation = 0

    def run(self) -> None:
        start = self.channel.receive()
        assert isinstance(start, StartTemplate)
        script = Path(start.cache_dir).parent / "fake-template.json"
        self.script = json.loads(script.read_text()) if script.exists() else {}
        self.claims = self.script.get("claims", {})
        if self.claims:
            script.unlink()
        if "exit_at_start" in self.script:
            os._exit(self.script["exit_at_start"])
        self.channel.send(TemplateReady())
        wake, waker = socket.socketpair()
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(self.channel.fileno(), select.POLLIN)
        poll.register(wake.fileno(), select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == wake.fileno():
                    wake.recv(64)
                    self.reap()
                else:
                    self.channel.fill()
                    while (message := self.channel.pending()) is not None:
                        self.answer(message)

    def reap(self) -> None:
        while self.alive:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self.channel.send(WorkerExited(self.alive.pop(pid), pid, os.waitstatus_to_exitcode(status)))

    def answer(self, message: Message) -> None:
        match message:
            case LoadModules():
                self.load(message)
            case SpawnWorker():
                self.spawn(message)
            case Ping():
                self.channel.send(Pong())
            case KillForked():
                for pid, worker_id in self.alive.items():
                    if worker_id == message.worker_id:
                        os.kill(pid, signal.SIGKILL)

    def load(self, message: LoadModules) -> None:
        names = [module.reference for module in message.modules]
        if set(names) & set(self.script.get("deadly", [])):
            os._exit(1)
        refused = self.script.get("refused", [])
        new = set(names) - self.loaded - set(refused)
        self.generation += bool(new)
        self.loaded |= new
        verdicts = tuple(ModuleVerdict(name, "refused" if name in refused else "ok", None) for name in names)
        told = self.claims.get("generation", self.generation)
        self.channel.send(ModulesLoaded(message.request_id, told, verdicts))

    def spawn(self, message: SpawnWorker) -> None:
        channel, attesting = (socket.socket(fileno=self.channel.fds.popleft()) for _ in range(2))
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            self.sock.close()
            attesting.close()
            work(channel, parent, message.title)
        channel.close()
        attesting.close()
        self.alive[pid] = message.worker_id
        claimed = self.claims.get("pid", pid)
        told = os.getppid() if claimed == "supervisor" else claimed
        self.channel.send(WorkerStarted(message.worker_id, told, self.claims.get("generation", self.generation)))


def main() -> None:
    control_socket = played_child()
    setproctitle("gateway: template")
    try:
        FakeTemplate(control_socket).run()
    except ChannelClosed:
        os._exit(0)


main()
